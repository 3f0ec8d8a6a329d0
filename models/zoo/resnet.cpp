#include "models/zoo/resnet.h"

#include "models/layers/activation.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "models/layers/resnet/stages.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"

namespace tutti {
namespace {

std::shared_ptr<Layer> stem(const ResNetOptions& o) {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = o.in_channels,
                                                .out_channels = o.width,
                                                .kernel_size = o.small_images ? 3 : 7,
                                                .stride = o.small_images ? 1 : 2,
                                                .padding = o.small_images ? 1 : 3});
}

std::shared_ptr<Layer> pooling(const ResNetOptions& o) {
  if (o.small_images) return std::make_shared<Identity>();
  return std::make_shared<MaxPool2d>(3, 2, 1);
}

}  // namespace

ResNet::ResNet(const ResNetOptions& options)
    : conv1_(add_slot("conv1", stem(options))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(options.width))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))),
      maxpool_(add_slot("maxpool", pooling(options))) {
  for (int64_t i = 0; i < kResNetStages; ++i)
    stages_.push_back(
        &add_slot("layer" + std::to_string(i + 1), resnet_stage(options.depth, options.width, i)));
  avgpool_ = &add_slot("avgpool", std::make_shared<AdaptiveAvgPool2d>());
  const int64_t features = resnet_channels(options.depth, options.width, kResNetStages - 1);
  fc_ = &add_slot("fc", std::make_shared<Linear>(features, options.num_classes));
}

// With channels last, oneDNN does not reorder inputs.
TensorTree ResNet::forward(const Batch& batch) {
  const at::Tensor images = batch["input"].contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor x = maxpool_(relu_(bn1_(conv1_(images))));
  for (const Slot* stage : stages_) x = (*stage)(x);
  return (*fc_)((*avgpool_)(x).flatten(1));
}

ModelPtr ResNetOptions::make(const Setting& section, const SampleSpec& samples) const {
  ResNetOptions options = *this;
  options.in_channels = image_channels(section, samples);
  if (!has_resnet_depth(depth)) section.at("depth").fail("expected 18, 34, 50, 101 or 152");
  positive(section.at("width"));
  const TargetPlan targets = plan_targets(section, samples);
  options.num_classes = targets.outputs;
  auto model = std::make_shared<ResNet>(options);
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
