#include "models/layers/conv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/layers/pool.h"

namespace tutti {
namespace {

// The convolution as a product of matrices.
at::Tensor convolved(const at::Tensor& images, const Conv2dOptions& o, const at::Tensor& weight,
                     const at::Tensor& bias) {
  const at::Tensor columns =
      at::im2col(images, o.kernel_size.dims(), o.dilation.dims(), o.padding.dims(), o.stride.dims());
  return weight.flatten(1).matmul(columns) + bias.unsqueeze(1);
}

TEST(Conv2d, HasAKernelOfItsOwnInEachDimension) {
  const at::Tensor images = at::randn({2, 4, 9, 8});
  const Conv2dOptions plain{.in_channels = 4, .out_channels = 6, .bias = true};
  std::vector<Conv2dOptions> all(4, plain);
  all[0].kernel_size = {1, 3};
  all[1].kernel_size = {3, 2};
  all[1].stride = {2, 1};
  all[2].kernel_size = {2, 3};
  all[2].padding = {0, 2};
  all[3].kernel_size = {3, 2};
  all[3].dilation = {1, 3};
  for (const Conv2dOptions& options : all) {
    Conv2d conv(options);
    materialise(conv, 3);
    const at::Tensor want = convolved(images, options, conv.weight().tensor, conv.bias()->tensor);
    EXPECT_TRUE(at::allclose(conv.forward(images).tensor().flatten(2), want, 1e-4, 1e-5));
  }
}

// libtorch's own, of few channels, writes behind its buffers.
TEST(Conv2d, AStridedPointOfFewChannelsIsWhatWideNumbersSay) {
  for (const Extent2d stride : {Extent2d(2), Extent2d(1, 3)}) {
    for (const int64_t channels : {1, 4, 8, 12}) {
      Conv2d layer({.in_channels = channels, .out_channels = 8, .stride = stride});
      materialise(layer, 3);
      const at::Tensor images = at::randn({16, channels, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor& weight = layer.weight().tensor;
      const at::Tensor wide = weight.detach().to(at::kDouble).requires_grad_();
      const at::Tensor found = layer.forward(images).tensor();
      const at::Tensor wanted = at::conv2d(images.to(at::kDouble), wide, {}, stride.dims());
      EXPECT_TRUE(at::allclose(found.to(at::kDouble), wanted, 1e-4, 1e-4));
      found.square().sum().backward();
      wanted.square().sum().backward();
      EXPECT_TRUE(at::allclose(weight.grad().to(at::kDouble), wide.grad(), 1e-3, 1e-3)) << channels;
    }
  }
}

// Memory that was freed before is no zeros.
TEST(Conv2d, AStridedPixelOfBfloat16HasTheGradientOfAPixel) {
  Conv2d conv({.in_channels = 32, .out_channels = 64, .kernel_size = 3, .stride = 2, .padding = 1});
  materialise(conv, 5);
  const at::Tensor weight = conv.weight().tensor, pixels = at::rand({16, 32, 1, 1});
  const at::Tensor low = weight.detach().to(at::kBFloat16).requires_grad_();
  conv.weight().tensor = low;
  for (int time = 0; time < 4; ++time) {
    for (int64_t count = 64; count < 300'000; count *= 2) at::full({count}, NAN);
    low.mutable_grad() = at::Tensor();
    conv.forward(pixels.to(at::kBFloat16)).tensor().to(at::kFloat).sum().backward();
    const at::Tensor gradient = low.grad().to(at::kFloat);
    EXPECT_EQ(gradient.count_nonzero().item<int64_t>(), 64 * 32);
    EXPECT_TRUE(at::allclose(gradient.select(3, 1).select(2, 1), pixels.sum(0).view({1, 32}).expand({64, 32}),
                             0.02, 0.02));
  }
}

TEST(Conv2d, AdoptsTheParametersOfAnother) {
  Conv2d conv({.in_channels = 2, .out_channels = 3, .kernel_size = 3, .stride = 2, .bias = true});
  materialise(conv, 3);
  Conv2dOptions options = conv.options();
  options.stride = 1;
  Conv2d dense(options, conv);
  const at::Tensor images = at::randn({1, 2, 7, 7});
  const at::Tensor all = dense.forward(images).tensor();
  EXPECT_TRUE(
      at::allclose(all.slice(2, 0, 5, 2).slice(3, 0, 5, 2), conv.forward(images).tensor(), 1e-4, 1e-5));
  EXPECT_EQ(&dense.weight(), &conv.weight());
  EXPECT_EQ(dense.bias(), conv.bias());
  options.kernel_size = 5;
  EXPECT_DEATH(Conv2d(options, conv), "parameters of other shapes");
}

TEST(Conv1d, IsAConv2dOfHeightOne) {
  const at::Tensor lines = at::randn({3, 4, 11});
  Conv1d conv({.in_channels = 4,
               .out_channels = 6,
               .kernel_size = 3,
               .stride = 2,
               .padding = 1,
               .dilation = 2,
               .bias = true});
  materialise(conv, 3);
  Conv2dOptions options{.kernel_size = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}};
  const at::Tensor want = convolved(lines.unsqueeze(2), options, conv.weight().tensor, conv.bias()->tensor);
  EXPECT_TRUE(at::allclose(conv.forward(lines).tensor(), want, 1e-4, 1e-5));
  const double bound = 1.0 / std::sqrt(12.0);  // of nn.Conv1d: fan_in = 4 * 3
  EXPECT_LE(conv.weight().tensor.abs().max().item<double>(), bound);
  EXPECT_GT(conv.weight().tensor.abs().max().item<double>(), 0.8 * bound);
}

TEST(Conv1d, DividesItsChannelsIntoGroups) {
  const at::Tensor lines = at::randn({3, 4, 5});
  Conv1d conv({.in_channels = 4, .out_channels = 2, .groups = 2});
  materialise(conv, 3);
  const at::Tensor weight = conv.weight().tensor;  // [2, 2, 1]
  const at::Tensor want = (lines.view({3, 2, 2, 5}) * weight.unsqueeze(0)).sum(2);
  EXPECT_TRUE(at::allclose(conv.forward(lines).tensor(), want, 1e-4, 1e-5));
}

TEST(Conv3d, IsASumOfConv2dsOverItsDepth) {
  const at::Tensor volume = at::randn({2, 4, 5, 6, 7});
  Conv3d conv({.in_channels = 4,
               .out_channels = 6,
               .kernel_size = {2, 3, 2},
               .stride = {1, 2, 1},
               .padding = {0, 1, 0},
               .dilation = {2, 1, 3},
               .bias = true});
  materialise(conv, 3);
  const Conv2dOptions flat{.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 3}};
  const at::Tensor &weight = conv.weight().tensor, &bias = conv.bias()->tensor;
  const at::Tensor found = conv.forward(volume).tensor();
  ASSERT_EQ(found.size(2), 3);  // of 5, less a dilation of 2
  for (int64_t d = 0; d < 3; ++d) {
    const at::Tensor near = convolved(volume.select(2, d), flat, weight.select(2, 0), bias);
    const at::Tensor far = convolved(volume.select(2, d + 2), flat, weight.select(2, 1), at::zeros({6}));
    EXPECT_TRUE(at::allclose(found.select(2, d).flatten(2), near + far, 1e-4, 1e-5));
  }
}

TEST(Convolution, ConvolvesWithWhatItsRuleMakesOfTheWeight) {
  Conv2d conv({.in_channels = 2, .out_channels = 3, .kernel_size = 3, .stride = 2});
  materialise(conv, 3);
  const at::Tensor images = at::randn({1, 2, 7, 7}), plain = conv.forward(images).tensor();
  conv.set_weight_rule([](const at::Tensor& weight) { return weight * 2; });
  EXPECT_TRUE(conv.forward(images).tensor().allclose(2 * plain));
  EXPECT_TRUE(Conv2d(conv.options(), conv).forward(images).tensor().allclose(2 * plain)) << "adopted too";
}

at::Tensor ramp() { return at::arange(25, at::kFloat).reshape({1, 1, 5, 5}); }

TEST(MaxPool2d, TakesPairsDilationAndCeilMode) {
  const auto largest = [](const MaxPool2dOptions& options) {
    return MaxPool2d(options).forward(ramp()).tensor().squeeze();
  };
  const auto are = [&](const MaxPool2dOptions& options, const std::vector<int64_t>& want) {
    return largest(options).flatten().equal(at::tensor(want).to(at::kFloat));
  };
  EXPECT_TRUE(are({.kernel_size = {1, 2}, .stride = {2, 2}}, {1, 3, 11, 13, 21, 23}));
  EXPECT_TRUE(are({.kernel_size = 2, .stride = 2, .dilation = {1, 3}}, {8, 18}));
  EXPECT_TRUE(are({.kernel_size = 2, .stride = 2, .ceil_mode = true}, {6, 8, 9, 16, 18, 19, 21, 23, 24}));
}

TEST(AvgPool2d, TakesPairsAndCeilMode) {
  const auto means = [](const AvgPool2dOptions& options) {
    return AvgPool2d(options).forward(ramp()).tensor().squeeze();
  };
  EXPECT_TRUE(means({.kernel_size = {5, 1}, .stride = {1, 2}}).equal(at::tensor({10.0F, 12.0F, 14.0F})));
  EXPECT_TRUE(means({.kernel_size = {5, 2}, .stride = {5, 2}, .ceil_mode = true})
                  .equal(at::tensor({10.5F, 12.5F, 14.0F})));
}

}  // namespace
}  // namespace tutti
