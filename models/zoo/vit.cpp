#include "models/zoo/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/vit/blocks.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"

namespace tutti {
namespace {

constexpr double kEps = 1e-6;

int64_t tokens_of(const VitOptions& o) {
  const int64_t side = o.image_size / o.patch_size;
  return side * side + 1;
}

std::shared_ptr<Layer> patches(const VitOptions& o) {
  auto conv = std::make_shared<Conv2d>(Conv2dOptions{.in_channels = o.in_channels,
                                                     .out_channels = o.hidden_dim,
                                                     .kernel_size = o.patch_size,
                                                     .stride = o.patch_size,
                                                     .bias = true});
  const auto inputs = static_cast<double>(o.in_channels * o.patch_size * o.patch_size);
  conv->weight().init = normal_init(std::sqrt(1.0 / inputs));
  conv->bias()->init = constant_init(0.0);
  return conv;
}

std::shared_ptr<Layer> encoder_layers(const VitOptions& o) {
  const VitBlockOptions block{.hidden_dim = o.hidden_dim,
                              .num_heads = o.num_heads,
                              .mlp_dim = o.mlp_dim,
                              .dropout = o.dropout,
                              .attention_dropout = o.attention_dropout};
  std::vector<std::shared_ptr<Layer>> chain;
  for (int64_t i = 0; i < o.num_layers; ++i) chain.push_back(std::make_shared<VitBlock>(block));
  return std::make_shared<Sequential>(std::move(chain), "encoder_layer_");
}

class Encoder final : public Layer {
 public:
  explicit Encoder(const VitOptions& o)
      : pos_embedding_(add_parameter("pos_embedding", {1, tokens_of(o), o.hidden_dim}, normal_init(0.02))),
        dropout_(add_slot("dropout", std::make_shared<Dropout>(o.dropout))),
        layers_(add_slot("layers", encoder_layers(o))),
        ln_(add_slot("ln", std::make_shared<LayerNorm>(o.hidden_dim, kEps))) {}
  TensorTree forward(const TensorTree& input) override {
    return ln_(layers_(dropout_(input.tensor() + pos_embedding_.tensor)));
  }
  const char* kind() const override { return "Encoder"; }

 private:
  Parameter& pos_embedding_;
  Slot& dropout_;
  Slot& layers_;
  Slot& ln_;
};

// Slot "head", which starts at zero.
class Heads final : public Layer {
 public:
  Heads(int64_t features, int64_t classes) : head_(add_slot("head", zeros(features, classes))) {}
  TensorTree forward(const TensorTree& input) override { return head_(input); }
  const char* kind() const override { return "Heads"; }

 private:
  static std::shared_ptr<Layer> zeros(int64_t features, int64_t classes) {
    auto linear = std::make_shared<Linear>(features, classes);
    for (const auto& parameter : linear->own_parameters()) parameter->init = constant_init(0.0);
    return linear;
  }

  Slot& head_;
};

}  // namespace

Vit::Vit(const VitOptions& options)
    : options_(options),
      class_token_(add_parameter("class_token", {1, 1, options.hidden_dim}, constant_init(0.0))),
      conv_proj_(add_slot("conv_proj", patches(options))),
      encoder_(add_slot("encoder", std::make_shared<Encoder>(options))),
      heads_(add_slot("heads", std::make_shared<Heads>(options.hidden_dim, options.num_classes))) {
  for (const auto& named : tutti::parameters(*this))
    parameters_ += static_cast<double>(named.parameter->tensor.numel());
}

TensorTree Vit::forward(const Batch& batch) {
  const at::Tensor patches = conv_proj_(batch["input"]).flatten(2).transpose(1, 2);
  const at::Tensor classes =
      class_token_.tensor.to(patches.scalar_type()).expand({patches.size(0), 1, options_.hidden_dim});
  const at::Tensor states = encoder_(at::cat({classes, patches}, 1));
  return heads_(states.select(1, 0));
}

double Vit::flops_per_batch(const Batch& batch) const {
  const auto tokens = static_cast<double>(tokens_of(options_));
  const double attention = 12.0 * static_cast<double>(options_.num_layers * options_.hidden_dim) * tokens;
  return static_cast<double>(batch["input"].size(0)) * tokens * (6.0 * parameters_ + attention);
}

ModelPtr VitOptions::make(const Setting& section, const SampleSpec& samples) const {
  VitOptions options = *this;
  options.in_channels = image_channels(section, samples);
  const Shape& shape = shape_of(section, samples, "input");
  if (shape[1] != shape[2]) refuse(section, samples, "input", "square images");
  options.image_size = agreed_size(section, "image_size", shape[1], "images of so many pixels a side");
  for (const char* key : {"patch_size", "num_layers", "hidden_dim", "mlp_dim"}) positive(section.at(key));
  if (options.image_size % patch_size != 0)
    section.at("patch_size")
        .fail("expected a divisor of the images' " + std::to_string(options.image_size) + " pixels");
  require_heads(section.at("num_heads"), hidden_dim, "hidden_dim");
  const TargetPlan targets = plan_targets(section, samples);
  options.num_classes = targets.outputs;
  auto model = std::make_shared<Vit>(options);
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
