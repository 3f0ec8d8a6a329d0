#include "algorithms/surgery/blurpool.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/zoo/resnet.h"

namespace tutti {
namespace {

// Each pixel with its neighbours by the means of 2 x 2 pixels, twice.
at::Tensor blurred_by_means(const at::Tensor& images) {
  return at::avg_pool2d(at::avg_pool2d(at::constant_pad_nd(images, {1, 1, 1, 1}), 2, 1), 2, 1);
}

constexpr Conv2dOptions kGrouped{.in_channels = 16,
                                 .out_channels = 8,
                                 .kernel_size = {3, 1},
                                 .stride = {1, 2},
                                 .padding = {2, 0},
                                 .dilation = {2, 1},
                                 .groups = 4};

at::Tensor convolved_by(const at::Tensor& images, const Conv2d& conv, Extent2d stride) {
  const Conv2dOptions& o = conv.options();
  return at::conv2d(images, conv.weight().tensor, {}, stride.dims(), o.padding.dims(), o.dilation.dims(),
                    o.groups);
}

TEST(BlurPoolTest, AFilterOfOnesOwnIsOfAnyOddSize) {
  const at::Tensor images = at::randn({2, 3, 6, 5});
  const at::Tensor means = at::full({1, 1, 5, 3}, 1.0 / 15);
  EXPECT_TRUE(at::allclose(blur_2d(images, {2, 1}, means), at::avg_pool2d(images, {5, 3}, {2, 1}, {2, 1}),
                           1e-4, 1e-6));
  EXPECT_TRUE(blur_2d(images, 1, means.repeat({3, 1, 1, 1})).equal(blur_2d(images, 1, means)));
  EXPECT_DEATH(blur_2d(images, 1, at::ones({1, 1, 2, 3})), "even height or width");
}

TEST(BlurPoolTest, AnImageWithoutPixelsIsLeftAlone) {
  const at::Tensor none = at::zeros({2, 3, 0, 5});
  EXPECT_TRUE(blur_2d(none, 2).is_same(none));
}

TEST(BlurPoolTest, AGroupedConvolutionBlursAllItsChannels) {
  const auto conv = std::make_shared<Conv2d>(kGrouped);
  BlurConv2d first(conv), last(conv, /*blur_first=*/false);
  materialise(first, 3);
  materialise(last, 3);
  const at::Tensor images = at::randn({2, 16, 7, 6});
  EXPECT_TRUE(at::allclose(first.forward(images).tensor(),
                           convolved_by(blurred_by_means(images), *conv, kGrouped.stride), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(last.forward(images).tensor(),
                           blurred_by_means(convolved_by(images, *conv, 1)).slice(3, 0, 6, 2), 1e-4, 1e-5));
}

TEST(BlurPoolTest, KeepsTheSizeOfOutputs) {
  for (const bool blur_first : {true, false})
    for (const int64_t side : {7, 8, 9}) {
      Sequential net({std::make_shared<Conv2d>(kGrouped), std::make_shared<MaxPool2d>(3, 2, 1)});
      materialise(net, 3);
      const at::Tensor images = at::randn({1, 16, side, side});
      const auto sizes = net.forward(images).tensor().sizes().vec();
      EXPECT_EQ(apply_blurpool(net, {.blur_first = blur_first}), 2);
      materialise(net, 3);
      EXPECT_EQ(net.forward(images).tensor().sizes(), sizes);
    }
}

TEST(BlurPoolTest, FewChannelsAndSmallStridesStay) {
  Conv2dOptions few = kGrouped, dense = kGrouped;
  few.in_channels = 12;
  dense.stride = 1;
  Sequential net({std::make_shared<Conv2d>(few), std::make_shared<Conv2d>(dense)});
  EXPECT_EQ(apply_blurpool(net), 0);
  EXPECT_EQ(apply_blurpool(net, {.min_channels = 12}), 1);
}

// As Composer counts: the stem has 3 input channels, and stages 2 to 4 begin with two strided convolutions.
TEST(BlurPoolTest, BlursTheStridedConvolutionsOfAResNet) {
  ResNet net({.depth = 18, .width = 16, .in_channels = 3, .num_classes = 10});
  EXPECT_EQ(apply_blurpool(net), 3 * 2 + 1);
}

TEST(BlurPoolTest, FiltersAreSavedAsByComposer) {
  Sequential net({std::make_shared<Conv2d>(kGrouped), std::make_shared<MaxPool2d>(2, 2)});
  apply_blurpool(net);
  const auto saved = buffers(net);
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].name, "0.blur_filter");
  EXPECT_EQ(saved[0].buffer->tensor.sizes(), at::IntArrayRef({16, 1, 3, 3}));
  EXPECT_EQ(saved[1].name, "1.filt2d");
  EXPECT_TRUE(saved[0].buffer->persistent && saved[1].buffer->persistent);
}

}  // namespace
}  // namespace tutti
