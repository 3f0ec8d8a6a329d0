#include "algorithms/surgery/blurpool.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "algorithms/surgery/effect.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

at::Tensor default_filter() {
  const at::Tensor line = at::tensor({1.0, 2.0, 1.0}, at::kFloat);
  return at::outer(line, line).div_(16.0).view({1, 1, 3, 3});
}

Init filter_init() {
  return [](at::Tensor& filter, const at::Generator&) { filter.copy_(default_filter()); };
}

std::shared_ptr<Conv2d> without_stride(const Conv2d& conv) {
  Conv2dOptions options = conv.options();
  options.stride = 1;
  return std::make_shared<Conv2d>(options, conv);
}

}  // namespace

at::Tensor blur_2d(const at::Tensor& input, Extent2d stride, const at::Tensor& filter) {
  const at::Tensor kernel = (filter.defined() ? filter : default_filter()).to(input.options());
  const int64_t channels = input.size(1), height = kernel.size(2), width = kernel.size(3);
  TUTTI_ASSERT(height % 2 == 1 && width % 2 == 1, "a filter of even height or width");
  const Extent2d padding(height / 2, width / 2);
  if (input.size(2) + 2 * padding.height < height || input.size(3) + 2 * padding.width < width) return input;
  const at::Tensor all = kernel.size(0) == 1 ? kernel.repeat({channels, 1, 1, 1}) : kernel;
  return at::conv2d(input, all, {}, stride.dims(), padding.dims(), /*dilation=*/1, /*groups=*/channels);
}

at::Tensor blurmax_pool2d(const at::Tensor& input, const MaxPool2dOptions& o, const at::Tensor& filter) {
  const at::Tensor maxima = at::max_pool2d(input, o.kernel_size.dims(), /*stride=*/1, o.padding.dims(),
                                           o.dilation.dims(), o.ceil_mode);
  return blur_2d(maxima, o.stride, filter);
}

BlurMaxPool2d::BlurMaxPool2d(const MaxPool2dOptions& options)
    : options_(options), filt2d_(add_buffer("filt2d", {1, 1, 3, 3}, filter_init())) {
  filt2d_.constant = true;
}

TensorTree BlurMaxPool2d::forward(const TensorTree& input) {
  return blurmax_pool2d(input.tensor(), options_, filt2d_.tensor);
}

BlurConv2d::BlurConv2d(std::shared_ptr<Conv2d> conv, bool blur_first)
    : blur_first_(blur_first),
      blur_stride_(blur_first ? 1 : conv->options().stride),
      conv_(add_slot("conv", blur_first ? conv : without_stride(*conv))),
      blur_filter_(add_buffer(
          "blur_filter", {blur_first ? conv->options().in_channels : conv->options().out_channels, 1, 3, 3},
          filter_init())) {
  blur_filter_.constant = true;
}

TensorTree BlurConv2d::forward(const TensorTree& input) {
  if (blur_first_) return conv_(blur_2d(input.tensor(), blur_stride_, blur_filter_.tensor));
  return blur_2d(conv_(input.tensor()), blur_stride_, blur_filter_.tensor);
}

int apply_blurpool(Layer& model, const BlurPoolOptions& options) {
  const auto blurred = wrapped_in<BlurConv2d>(model);
  const auto replaced = replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const auto layer = named.slot->share();
    const auto* pool = dynamic_cast<const MaxPool2d*>(layer.get());
    if (pool && options.replace_maxpools) return std::make_shared<BlurMaxPool2d>(pool->options());
    const auto conv = std::dynamic_pointer_cast<Conv2d>(layer);
    if (!conv || !options.replace_convs || blurred.count(layer.get())) return nullptr;
    const Conv2dOptions& conv_options = conv->options();
    const bool is_strided = std::max(conv_options.stride.height, conv_options.stride.width) > 1;
    if (!is_strided || conv_options.in_channels < options.min_channels) return nullptr;
    return std::make_shared<BlurConv2d>(conv, options.blur_first);
  });
  return static_cast<int>(replaced.size());
}

void BlurPool::apply(Event, State& state, Logger&) {
  warn_without_effect(state, apply_blurpool(*state.model, options_), name(),
                      "strided Conv2d of at least " + std::to_string(options_.min_channels) +
                          " input channels and no MaxPool2d");
}

AlgorithmPtr BlurPoolOptions::make(const Setting& section) const {
  if (!replace_convs && !replace_maxpools)
    section.at("replace_maxpools").fail("with replace_convs = false too, nothing would be replaced");
  return std::make_shared<BlurPool>(*this);
}

}  // namespace tutti
