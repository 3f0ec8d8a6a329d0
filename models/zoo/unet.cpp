#include "models/zoo/unet.h"

#include <string>
#include <string_view>

#include "models/layers/unet/blocks.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"

namespace tutti {
namespace {

UnetEncoderOptions encoder_of(const UnetOptions& o) {
  constexpr std::string_view kFamily = "resnet";
  return {.resnet = std::stol(o.encoder_name.substr(kFamily.size())),
          .width = o.encoder_width,
          .in_channels = o.in_channels,
          .depth = o.encoder_depth};
}

}  // namespace

Unet::Unet(const UnetOptions& options)
    : encoder_(add_slot("encoder", std::make_shared<UnetEncoder>(encoder_of(options)))),
      decoder_(add_slot("decoder", std::make_shared<UnetDecoder>(encoder_of(options).channels(),
                                                                 options.decoder_channels))),
      head_(add_slot("segmentation_head",
                     segmentation_head(options.decoder_channels.back(), options.classes))) {}

// With channels last, oneDNN does not reorder inputs.
TensorTree Unet::forward(const Batch& batch) {
  const TensorTree images = batch["input"].contiguous(at::MemoryFormat::ChannelsLast);
  return head_(decoder_(encoder_(images)));
}

ModelPtr UnetOptions::make(const Setting& section, const SampleSpec& samples) const {
  UnetOptions options = *this;
  options.in_channels = image_channels(section, samples);
  if (static_cast<int64_t>(decoder_channels.size()) != encoder_depth)
    section.at("decoder_channels")
        .fail("expected " + std::to_string(encoder_depth) + " numbers, as encoder_depth says");
  const TargetPlan targets = plan_pixels(section, samples);
  options.classes = targets.outputs;
  auto model = std::make_shared<Unet>(options);
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
