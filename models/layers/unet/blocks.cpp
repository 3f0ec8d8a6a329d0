#include "models/layers/unet/blocks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "models/layers/resnet/stages.h"

namespace tutti {
namespace {

constexpr int64_t kKernel = 3;

std::shared_ptr<Layer> layer_list(std::vector<std::shared_ptr<Layer>> chain) {
  return std::make_shared<Sequential>(std::move(chain));
}

std::shared_ptr<Conv2d> same_size(int64_t in_channels, int64_t out_channels, bool bias) {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = in_channels,
                                                .out_channels = out_channels,
                                                .kernel_size = kKernel,
                                                .padding = kKernel / 2,
                                                .bias = bias});
}

double fan(int64_t channels) { return static_cast<double>(channels * kKernel * kKernel); }

std::shared_ptr<Layer> conv_relu(int64_t in_channels, int64_t out_channels) {
  auto conv = same_size(in_channels, out_channels, /*bias=*/false);
  conv->weight().init = uniform_init(std::sqrt(6.0 / fan(in_channels)));  // He et al. 2015, fan_in
  return layer_list({std::move(conv), std::make_shared<BatchNorm2d>(out_channels),
                     std::make_shared<ReLU>(/*in_place=*/true)});
}

std::shared_ptr<Layer> stem(const UnetEncoderOptions& o) {
  return std::make_shared<Conv2d>(Conv2dOptions{
      .in_channels = o.in_channels, .out_channels = o.width, .kernel_size = 7, .stride = 2, .padding = 3});
}

void leave_untrained(Layer& layer) {
  for (const NamedParameter& named : parameters(layer)) named.parameter->trained = false;
}

class DecoderBlocks final : public Layer {
 public:
  DecoderBlocks(std::vector<int64_t> features, const std::vector<int64_t>& channels) {
    std::ranges::reverse(features);
    features.back() = 0;  // of the images, no channel is appended
    for (std::size_t i = 0; i < channels.size(); ++i)
      add_slot(std::to_string(i), std::make_shared<UnetDecoderBlock>(i == 0 ? features[0] : channels[i - 1],
                                                                     features[i + 1], channels[i]));
  }
  TensorTree forward(const TensorTree& features) override {
    TensorTree x = features.children().back().second;
    std::size_t skip = features.children().size() - 1;
    for (const auto& slot : slots())
      x = (*slot)(TensorTree(TensorTree::Children{{"x", x}, {"skip", features.children()[--skip].second}}));
    return x;
  }
  const char* kind() const override { return "UnetDecoderBlocks"; }
};

}  // namespace

std::vector<int64_t> UnetEncoderOptions::channels() const {
  std::vector<int64_t> all = {in_channels, width};
  for (int64_t i = 0; i + 1 < depth; ++i) all.push_back(resnet_channels(resnet, width, i));
  return all;
}

UnetEncoder::UnetEncoder(const UnetEncoderOptions& o)
    : conv1_(add_slot("conv1", stem(o))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(o.width))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))),
      maxpool_(add_slot("maxpool", std::make_shared<MaxPool2d>(3, 2, 1))) {
  for (int64_t i = 0; i < kResNetStages; ++i) {
    Slot& stage = add_slot("layer" + std::to_string(i + 1), resnet_stage(o.resnet, o.width, i));
    if (i + 1 < o.depth)
      stages_.push_back(&stage);
    else
      leave_untrained(stage.layer());
  }
}

TensorTree UnetEncoder::forward(const TensorTree& images) {
  std::vector<TensorTree> features{images, relu_(bn1_(conv1_(images.tensor())))};
  at::Tensor x = maxpool_(features.back().tensor());
  for (const Slot* stage : stages_) features.emplace_back(x = (*stage)(x));
  return TensorTree::list(std::move(features));
}

UnetDecoderBlock::UnetDecoderBlock(int64_t in_channels, int64_t skip_channels, int64_t out_channels)
    : appends_skip_(skip_channels > 0),
      conv1_(add_slot("conv1", conv_relu(in_channels + skip_channels, out_channels))),
      conv2_(add_slot("conv2", conv_relu(out_channels, out_channels))) {}

TensorTree UnetDecoderBlock::forward(const TensorTree& input) {
  const at::Tensor& skip = input["skip"];
  const std::array<int64_t, 2> size = {skip.size(2), skip.size(3)};
  const at::Tensor x = at::upsample_nearest2d(input["x"], size);
  return conv2_(conv1_(appends_skip_ ? at::cat({x, skip}, 1) : x));
}

UnetDecoder::UnetDecoder(const std::vector<int64_t>& features, const std::vector<int64_t>& channels)
    : blocks_(add_slot("blocks", std::make_shared<DecoderBlocks>(features, channels))) {}

std::shared_ptr<Layer> segmentation_head(int64_t in_channels, int64_t classes) {
  auto conv = same_size(in_channels, classes, /*bias=*/true);
  conv->weight().init =
      uniform_init(std::sqrt(6.0 / (fan(in_channels) + fan(classes))));  // Glorot and Bengio, 2010
  conv->bias()->init = constant_init(0.0);
  return layer_list({std::move(conv)});
}

}  // namespace tutti
