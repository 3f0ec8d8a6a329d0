#include "models/layers/diffusion/blocks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <memory>
#include <string>

#include "models/layers/diffusion/attention.h"
#include "runtime/error.h"

namespace tutti {
namespace {

std::string numbered(const char* list, int64_t i) { return std::string(list) + '.' + std::to_string(i); }

std::shared_ptr<Layer> resnet(int64_t in, int64_t out, const UnetBlockOptions& o) {
  return std::make_shared<ResnetBlock2D>(in, out, o);
}

}  // namespace

Downsample2D::Downsample2D(int64_t channels, int64_t padding)
    : pads_(padding == 0), conv_(add_slot("conv", unet_convolution(channels, channels, 3, 2, padding))) {}

TensorTree Downsample2D::forward(const TensorTree& input) {
  return conv_(pads_ ? at::constant_pad_nd(input.tensor(), {0, 1, 0, 1}) : input.tensor());
}

Upsample2D::Upsample2D(int64_t channels) : conv_(add_slot("conv", unet_convolution(channels, channels, 3))) {}

TensorTree Upsample2D::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  return conv_(at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}));
}

DownBlock2D::DownBlock2D(const UnetBlockSize& size, const UnetBlockOptions& o) {
  for (int64_t i = 0; size.attends && i < size.layers; ++i)
    attentions_.push_back(
        &add_slot(numbered("attentions", i), std::make_shared<ImageAttention>(size.out, o)));
  for (int64_t i = 0; i < size.layers; ++i)
    resnets_.push_back(&add_slot(numbered("resnets", i), resnet(i == 0 ? size.in : size.out, size.out, o)));
  if (size.resamples)
    downsampler_ =
        &add_slot("downsamplers.0", std::make_shared<Downsample2D>(size.out, o.downsample_padding));
}

TensorTree DownBlock2D::forward(const TensorTree& input) {
  auto [x, time] = TimedStates::of(input);
  std::vector<TensorTree> states;
  for (std::size_t i = 0; i < resnets_.size(); ++i) {
    x = (*resnets_[i])(TimedStates{x, time}.tree()).tensor();
    if (!attentions_.empty()) x = (*attentions_[i])(x);
    states.emplace_back(x);
  }
  if (downsampler_) states.emplace_back((*downsampler_)(x));
  return TensorTree::list(std::move(states));
}

UnetMidBlock2D::UnetMidBlock2D(int64_t channels, bool attends, const UnetBlockOptions& o)
    : first_(add_slot("resnets.0", resnet(channels, channels, o))),
      attention_(attends ? &add_slot("attentions.0", std::make_shared<ImageAttention>(channels, o))
                         : nullptr),
      second_(add_slot("resnets.1", resnet(channels, channels, o))) {}

TensorTree UnetMidBlock2D::forward(const TensorTree& input) {
  auto [x, time] = TimedStates::of(input);
  x = first_(input).tensor();
  if (attention_) x = (*attention_)(x);
  return second_(TimedStates{x, time}.tree());
}

UpBlock2D::UpBlock2D(const UnetBlockSize& size, const UnetBlockOptions& o) {
  for (int64_t i = 0; size.attends && i < size.layers; ++i)
    attentions_.push_back(
        &add_slot(numbered("attentions", i), std::make_shared<ImageAttention>(size.out, o)));
  for (int64_t i = 0; i < size.layers; ++i) {
    const int64_t from_skip = i + 1 == size.layers ? size.skipped : size.out;
    const int64_t in = (i == 0 ? size.in : size.out) + from_skip;
    resnets_.push_back(&add_slot(numbered("resnets", i), resnet(in, size.out, o)));
  }
  if (size.resamples) upsampler_ = &add_slot("upsamplers.0", std::make_shared<Upsample2D>(size.out));
}

TensorTree UpBlock2D::forward(const TensorTree& input) {
  auto [x, time] = TimedStates::of(input);
  const auto& skips = input.at("skips").children();
  TUTTI_ASSERT(skips.size() == resnets_.size(), "an up block takes a state for each layer");
  for (std::size_t i = 0; i < resnets_.size(); ++i) {
    const at::Tensor joined = at::cat({x, skips[skips.size() - 1 - i].second.tensor()}, 1);
    x = (*resnets_[i])(TimedStates{joined, time}.tree()).tensor();
    if (!attentions_.empty()) x = (*attentions_[i])(x);
  }
  return upsampler_ ? (*upsampler_)(x) : x;
}

}  // namespace tutti
