#include "models/layers/basic_block.h"

#include "models/layers/activation.h"
#include "models/layers/batch_norm2d.h"
#include "models/layers/conv2d.h"
#include "models/layers/sequential.h"

namespace tutti {
namespace {

std::shared_ptr<Layer> convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = in,
                                                .out_channels = out,
                                                .kernel_size = kernel,
                                                .stride = stride,
                                                .padding = kernel / 2});
}

}  // namespace

BasicBlock::BasicBlock(int64_t in_channels, int64_t out_channels, int64_t stride)
    : conv1_(add_slot("conv1", convolution(in_channels, out_channels, 3, stride))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(out_channels))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))),
      conv2_(add_slot("conv2", convolution(out_channels, out_channels, 3, 1))),
      bn2_(add_slot("bn2", std::make_shared<BatchNorm2d>(out_channels))) {
  if (in_channels == out_channels && stride == 1) return;
  downsample_ = &add_slot("downsample", std::make_shared<Sequential>(std::vector<std::shared_ptr<Layer>>{
                                            convolution(in_channels, out_channels, 1, stride),
                                            std::make_shared<BatchNorm2d>(out_channels)}));
}

TensorTree BasicBlock::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor inner = relu_(bn1_(conv1_(x)));
  at::Tensor y = bn2_(conv2_(inner));
  y.add_(downsample_ ? (*downsample_)(x) : x);
  return relu_(y);
}

}  // namespace tutti
