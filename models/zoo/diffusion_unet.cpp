#include "models/zoo/diffusion_unet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mse_loss.h>

#include <algorithm>

#include "models/layers/activation.h"
#include "models/layers/diffusion/blocks.h"
#include "models/layers/diffusion/time_embedding.h"
#include "models/zoo/sample_checks.h"
#include "tensors/device.h"

namespace tutti {
namespace {

constexpr int64_t kTimeFactor = 4;  // features of the timestep's embedding for each first channel

UnetBlockOptions block_options(const DiffusionUnetOptions& o) {
  return {.time_features = kTimeFactor * o.block_out_channels.front(),
          .groups = o.norm_num_groups,
          .eps = o.norm_eps,
          .dropout = o.dropout,
          .act_fn = o.act_fn,
          .scale_shift = o.resnet_time_scale_shift == "scale_shift",
          .head_features = o.attention_head_dim,
          .downsample_padding = o.downsample_padding};
}

// Over a tree of noisy "images" and their "timesteps".
class Unet2D final : public Layer {
 public:
  explicit Unet2D(const DiffusionUnetOptions& o)
      : options_(o),
        conv_in_(add_slot("conv_in", unet_convolution(o.in_channels, o.block_out_channels.front(), 3))),
        time_embedding_(add_slot("time_embedding", std::make_shared<TimestepEmbedding>(
                                                       o.block_out_channels.front(),
                                                       kTimeFactor * o.block_out_channels.front()))) {
    add_down_blocks();
    UnetBlockOptions middle = block_options(o);
    middle.output_scale = o.mid_block_scale_factor;
    middle.attention_norm = !middle.scale_shift;
    mid_block_ = &add_slot(
        "mid_block", std::make_shared<UnetMidBlock2D>(o.block_out_channels.back(), o.add_attention, middle));
    add_up_blocks();
    const int64_t channels = o.block_out_channels.front();
    conv_norm_out_ = &add_slot("conv_norm_out", unet_norm(channels, block_options(o)));
    conv_act_ = &add_slot("conv_act", std::make_shared<SiLU>());
    conv_out_ = &add_slot("conv_out", unet_convolution(channels, o.in_channels, 3));
  }

  TensorTree forward(const TensorTree& input) override {
    const at::Tensor& images = input["images"];
    const at::Tensor waves = sinusoids(input["timesteps"], options_.block_out_channels.front(),
                                       options_.flip_sin_to_cos, options_.freq_shift);
    TimedStates x{conv_in_(options_.center_input_sample ? images * 2 - 1 : images), time_embedding_(waves)};
    std::vector<TensorTree> skips{x.states};
    for (Slot* block : down_blocks_) {
      const TensorTree states = (*block)(x.tree());
      for (const auto& [name, state] : states.children()) skips.push_back(state);
      x.states = skips.back().tensor();
    }
    x.states = (*mid_block_)(x.tree()).tensor();
    const auto taken = static_cast<std::ptrdiff_t>(options_.layers_per_block + 1);
    for (Slot* block : up_blocks_) {
      TensorTree timed = x.tree();
      timed.set("skips", TensorTree::list({skips.end() - taken, skips.end()}));
      skips.erase(skips.end() - taken, skips.end());
      x.states = (*block)(timed).tensor();
    }
    return (*conv_out_)((*conv_act_)((*conv_norm_out_)(x.states)));
  }

  const char* kind() const override { return "UNet2DModel"; }

 private:
  std::size_t sizes() const { return options_.block_out_channels.size(); }

  void add_down_blocks() {
    const auto& channels = options_.block_out_channels;
    for (std::size_t i = 0; i < sizes(); ++i) {
      const UnetBlockSize size{.in = channels[i == 0 ? 0 : i - 1],
                               .out = channels[i],
                               .layers = options_.layers_per_block,
                               .attends = options_.down_block_types[i] == "AttnDownBlock2D",
                               .resamples = i + 1 < sizes()};
      down_blocks_.push_back(&add_slot("down_blocks." + std::to_string(i),
                                       std::make_shared<DownBlock2D>(size, block_options(options_))));
    }
  }

  void add_up_blocks() {
    const std::vector<int64_t> channels(options_.block_out_channels.rbegin(),
                                        options_.block_out_channels.rend());
    for (std::size_t i = 0; i < sizes(); ++i) {
      const UnetBlockSize size{.in = channels[i == 0 ? 0 : i - 1],
                               .out = channels[i],
                               .skipped = channels[std::min(i + 1, sizes() - 1)],
                               .layers = options_.layers_per_block + 1,
                               .attends = options_.up_block_types[i] == "AttnUpBlock2D",
                               .resamples = i + 1 < sizes()};
      up_blocks_.push_back(&add_slot("up_blocks." + std::to_string(i),
                                     std::make_shared<UpBlock2D>(size, block_options(options_))));
    }
  }

  DiffusionUnetOptions options_;
  Slot& conv_in_;
  Slot& time_embedding_;
  std::vector<Slot*> down_blocks_, up_blocks_;
  Slot* mid_block_ = nullptr;
  Slot* conv_norm_out_ = nullptr;
  Slot* conv_act_ = nullptr;
  Slot* conv_out_ = nullptr;
};

// A block type for each size, of the two that there are.
void require_types(const Setting& key, std::size_t sizes, const std::string& plain,
                   const std::string& attending) {
  const auto types = key.texts();
  if (types.size() != sizes)
    key.fail("expected " + std::to_string(sizes) + " types, one for each of block_out_channels");
  for (const std::string& type : types)
    if (type != plain && type != attending)
      key.fail("expected " + plain + " or " + attending + ", not '" + type + "'");
}

void require_channels(const Setting& section, const DiffusionUnetOptions& o) {
  const Setting& channels = section.at("block_out_channels");
  if (o.block_out_channels.empty()) channels.fail("expected a number for each size of the images");
  const auto attends = [&](std::size_t i) {
    return o.down_block_types[i].starts_with("Attn") || o.up_block_types.rbegin()[i].starts_with("Attn") ||
           (o.add_attention && i + 1 == o.block_out_channels.size());
  };
  for (std::size_t i = 0; i < o.block_out_channels.size(); ++i) {
    const int64_t width = o.block_out_channels[i];
    if (width % o.norm_num_groups != 0)
      section.at("norm_num_groups").fail("expected a divisor of block_out_channels, " + channels.toml());
    if (o.attention_head_dim > 0 && attends(i) && width % o.attention_head_dim != 0)
      section.at("attention_head_dim")
          .fail("expected a divisor of the " + std::to_string(width) +
                " channels that an attention has; 0: one head");
  }
  const double frequencies = static_cast<double>(o.block_out_channels.front() / 2);
  if (o.freq_shift >= frequencies)
    section.at("freq_shift").fail("expected less than half of the first of block_out_channels");
}

}  // namespace

DiffusionUnet::DiffusionUnet(const DiffusionUnetOptions& options)
    : options_(options), schedule_(options), unet_(add_slot("", std::make_shared<Unet2D>(options))) {}

at::Tensor DiffusionUnet::predict(const at::Tensor& images, const at::Tensor& timesteps) {
  return unet_(TensorTree(TensorTree::Children{{"images", images}, {"timesteps", timesteps}})).tensor();
}

DrawnNoise DiffusionUnet::drawn_for(const at::Tensor& images) const {
  const auto keys = context().training ? keys_of_places(context().draws("Noise")->key_of_batch(),
                                                        context().first_sample, images.size(0))
                                       : keys_of_contents(images);
  return drawn_noise(keys, images.sizes().slice(1), schedule_.timesteps());
}

TensorTree DiffusionUnet::forward(const Batch& batch) {
  const at::Tensor& images = batch["input"];
  const DrawnNoise drawn = drawn_for(images);
  const at::Tensor noise = copy_to_device(drawn.noise, images.device());
  const at::Tensor noisy = schedule_.add_noise(images, noise, drawn.timesteps);
  return TensorTree::Children{
      {"prediction", predict(noisy, copy_to_device(drawn.timesteps, images.device()))},
      {"target", schedule_.target(images, noise, drawn.timesteps)}};
}

at::Tensor DiffusionUnet::loss(const Outputs& outputs, const Batch&) {
  return at::mse_loss(outputs["prediction"].to(at::kFloat), outputs["target"]);
}

at::Tensor DiffusionUnet::losses(const Outputs& outputs, const Batch&) {
  return (outputs["prediction"].to(at::kFloat) - outputs["target"]).square().flatten(1).mean(1);
}

void DiffusionUnet::update_metric(const Batch&, const Outputs& outputs, Metric& metric) {
  metric.update(outputs["prediction"], outputs["target"]);
}

ModelPtr DiffusionUnetOptions::make(const Setting& section, const SampleSpec& samples) const {
  DiffusionUnetOptions options = *this;
  options.in_channels = image_channels(section, samples);
  agreed_size(section, "out_channels", options.in_channels, "channels an image");
  const Shape& shape = shape_of(section, samples, "input");
  if (shape[1] != shape[2]) refuse(section, samples, "input", "square images");
  agreed_size(section, "sample_size", shape[1], "images of so many pixels a side");
  const std::size_t sizes = block_out_channels.size();
  require_types(section.at("down_block_types"), sizes, "DownBlock2D", "AttnDownBlock2D");
  require_types(section.at("up_block_types"), sizes, "UpBlock2D", "AttnUpBlock2D");
  require_channels(section, options);
  constexpr std::size_t kMostSizes = 20;
  const int64_t halvings = int64_t{1} << (std::min(sizes, kMostSizes) - 1);
  if (sizes > kMostSizes || sample_size % halvings != 0)
    section.at("block_out_channels")
        .fail("the images' " + std::to_string(sample_size) + " pixels cannot be halved " +
              std::to_string(sizes - 1) + " times");
  return std::make_shared<DiffusionUnet>(options);
}

}  // namespace tutti
