#include "models/layers/diffusion/resnet.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "runtime/error.h"

namespace tutti {

std::shared_ptr<Layer> unet_norm(int64_t channels, const UnetBlockOptions& o) {
  return std::make_shared<GroupNorm>(
      GroupNormOptions{.groups = o.groups, .channels = channels, .eps = o.eps});
}

std::shared_ptr<Conv2d> unet_convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                                         int64_t padding) {
  auto conv = std::make_shared<Conv2d>(Conv2dOptions{.in_channels = in,
                                                     .out_channels = out,
                                                     .kernel_size = kernel,
                                                     .stride = stride,
                                                     .padding = padding < 0 ? kernel / 2 : padding,
                                                     .bias = true});
  conv->weight().init = kaiming_uniform_init(in * kernel * kernel);
  return conv;
}

ResnetBlock2D::ResnetBlock2D(int64_t in, int64_t out, const UnetBlockOptions& o)
    : scale_shift_(o.scale_shift),
      output_scale_(o.output_scale),
      nonlinearity_(add_slot("nonlinearity", make_activation(o.act_fn))),
      norm1_(add_slot("norm1", unet_norm(in, o))),
      conv1_(add_slot("conv1", unet_convolution(in, out, 3))),
      time_emb_proj_(add_slot("time_emb_proj",
                              std::make_shared<Linear>(o.time_features, o.scale_shift ? 2 * out : out))),
      norm2_(add_slot("norm2", unet_norm(out, o))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(o.dropout))),
      conv2_(add_slot("conv2", unet_convolution(out, out, 3))),
      conv_shortcut_(in == out ? nullptr : &add_slot("conv_shortcut", unet_convolution(in, out, 1))) {}

at::Tensor ResnetBlock2D::with_time(const at::Tensor& x, const at::Tensor& time) const {
  const at::Tensor time_bias = time_emb_proj_(nonlinearity_(time)).unsqueeze(-1).unsqueeze(-1);
  if (!scale_shift_) return norm2_(x + time_bias);
  const auto parts = time_bias.chunk(2, 1);
  return norm2_(x) * (parts[0] + 1) + parts[1];
}

TensorTree ResnetBlock2D::forward(const TensorTree& input) {
  const auto [x, time] = TimedStates::of(input);
  const at::Tensor inner = with_time(conv1_(nonlinearity_(norm1_(x))), time);
  const at::Tensor branch = conv2_(dropout_(nonlinearity_(inner)));
  const at::Tensor sum = (conv_shortcut_ ? (*conv_shortcut_)(x) : x) + branch;
  return output_scale_ == 1.0 ? sum : sum / output_scale_;
}

}  // namespace tutti
