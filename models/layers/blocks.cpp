#include "models/layers/blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "models/layers/activation.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"

namespace tutti {
namespace {

std::shared_ptr<Layer> convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = in,
                                                .out_channels = out,
                                                .kernel_size = kernel,
                                                .stride = stride,
                                                .padding = kernel / 2});
}

std::shared_ptr<Layer> projection(int64_t in_channels, int64_t out_channels, int64_t stride) {
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Layer>>{
      convolution(in_channels, out_channels, 1, stride), std::make_shared<BatchNorm2d>(out_channels)});
}

}  // namespace

Sequential::Sequential(std::vector<std::shared_ptr<Layer>> layers, const std::string& slot_prefix) {
  for (auto& layer : layers) add_slot(slot_prefix + std::to_string(slots().size()), std::move(layer));
}

TensorTree Sequential::forward(const TensorTree& input) {
  TensorTree x = input;
  for (const auto& slot : slots()) x = (*slot)(x);
  return x;
}

ResidualLayers::ResidualLayers(std::shared_ptr<Layer> main, std::shared_ptr<Layer> shortcut)
    : main_(add_slot("main", std::move(main))),
      shortcut_(shortcut ? &add_slot("shortcut", std::move(shortcut)) : nullptr) {}

Concat::Concat(std::vector<std::shared_ptr<Layer>> branches, int64_t dim) : dim_(dim) {
  for (auto& branch : branches) add_slot(std::to_string(slots().size()), std::move(branch));
}

TensorTree Concat::forward(const TensorTree& input) {
  std::vector<at::Tensor> outputs;
  for (const auto& slot : slots()) outputs.push_back((*slot)(input.tensor()));
  return at::cat(outputs, dim_);
}

BasicBlock::BasicBlock(int64_t in_channels, int64_t out_channels, int64_t stride)
    : conv1_(add_slot("conv1", convolution(in_channels, out_channels, 3, stride))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(out_channels))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))),
      conv2_(add_slot("conv2", convolution(out_channels, out_channels, 3, 1))),
      bn2_(add_slot("bn2", std::make_shared<BatchNorm2d>(out_channels))) {
  if (in_channels == out_channels && stride == 1) return;
  downsample_ = &add_slot("downsample", projection(in_channels, out_channels, stride));
}

at::Tensor BasicBlock::main(const at::Tensor& x) { return bn2_(conv2_(relu_(bn1_(conv1_(x))))); }

at::Tensor BasicBlock::shortcut(const at::Tensor& x) { return downsample_ ? (*downsample_)(x) : x; }

at::Tensor BasicBlock::join(at::Tensor main, const at::Tensor& shortcut) {
  return relu_(main.add_(shortcut));
}

at::Tensor BasicBlock::skip(const at::Tensor& x) { return downsample_ ? relu_((*downsample_)(x)) : x; }

Bottleneck::Bottleneck(int64_t in_channels, int64_t channels, int64_t stride)
    : conv1_(add_slot("conv1", convolution(in_channels, channels, 1, 1))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(channels))),
      conv2_(add_slot("conv2", convolution(channels, channels, 3, stride))),
      bn2_(add_slot("bn2", std::make_shared<BatchNorm2d>(channels))),
      conv3_(add_slot("conv3", convolution(channels, kExpansion * channels, 1, 1))),
      bn3_(add_slot("bn3", std::make_shared<BatchNorm2d>(kExpansion * channels))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))) {
  if (in_channels == kExpansion * channels && stride == 1) return;
  downsample_ = &add_slot("downsample", projection(in_channels, kExpansion * channels, stride));
}

at::Tensor Bottleneck::main(const at::Tensor& x) {
  return bn3_(conv3_(relu_(bn2_(conv2_(relu_(bn1_(conv1_(x))))))));
}

at::Tensor Bottleneck::shortcut(const at::Tensor& x) { return downsample_ ? (*downsample_)(x) : x; }

at::Tensor Bottleneck::join(at::Tensor main, const at::Tensor& shortcut) {
  return relu_(main.add_(shortcut));
}

at::Tensor Bottleneck::skip(const at::Tensor& x) { return downsample_ ? relu_((*downsample_)(x)) : x; }

std::shared_ptr<LayerNorm> norm_before_linear(int64_t features) {
  return std::make_shared<LayerNorm>(LayerNormOptions{.shape = {features}, .before_linear = true});
}

GptMlp::GptMlp(int64_t features, double dropout, double output_deviation)
    : c_fc_(add_slot("c_fc", std::make_shared<Conv1D>(features, 4 * features))),
      act_(add_slot("act", std::make_shared<GELU>(GELU::Form::kTanh))),
      c_proj_(add_slot("c_proj", std::make_shared<Conv1D>(4 * features, features, output_deviation))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(dropout))) {}

TensorTree GptMlp::forward(const TensorTree& input) { return dropout_(c_proj_(act_(c_fc_(input)))); }

GptBlock::GptBlock(const CausalSelfAttention::Options& options)
    : ln_1_(add_slot("ln_1", norm_before_linear(options.features))),
      attn_(add_slot("attn", std::make_shared<CausalSelfAttention>(options))),
      ln_2_(add_slot("ln_2", norm_before_linear(options.features))),
      mlp_(add_slot("mlp",
                    std::make_shared<GptMlp>(options.features, options.dropout, options.output_deviation))) {}

TensorTree GptBlock::forward(const TensorTree& input) {
  const auto [x, mask] = MaskedStates::of(input);
  const at::Tensor attended = x + attn_(MaskedStates{ln_1_(x), mask}.tree()).tensor();
  return MaskedStates{attended + mlp_(ln_2_(attended)), mask}.tree();
}

}  // namespace tutti
