#include "data/transforms/augmentations/color_operations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/data/transforms/test_images.h"

namespace tutti {
namespace {

using ColorOperation = at::Tensor (*)(const at::Tensor&, double);

const std::vector<double> kFactors = {0.0, 0.1, 0.5, 0.99, 1.0, 1.3, 4.7, 9.6};

at::Tensor gray_values(const at::Tensor& image) {
  if (image.size(2) == 1) return image;
  const at::Tensor weights = at::tensor({19595, 38470, 7471}, at::kLong);
  return ((image.to(at::kLong) * weights).sum(2, true) + 0x8000).bitwise_right_shift(16);
}

// Pillow's blend: a product and a sum in float32.
at::Tensor blend_of(const at::Tensor& degenerate, const at::Tensor& image, double factor) {
  const at::Tensor difference = image.to(at::kFloat) - degenerate.to(at::kFloat);
  return (degenerate.to(at::kFloat) + difference.mul(static_cast<float>(factor))).clamp(0, 255).to(at::kByte);
}

// Pillow's SMOOTH: sums in float32, of the inner pixels.
at::Tensor smoothed(const at::Tensor& image) {
  const int64_t height = image.size(0), width = image.size(1);
  at::Tensor result = image.clone();
  if (height < 3 || width < 3) return result;
  at::Tensor sum = at::full({height - 2, width - 2, image.size(2)}, 0.5F);
  for (int64_t y = 0; y < 3; ++y) {
    for (int64_t x = 0; x < 3; ++x) {
      const float weight = (x == 1 && y == 1 ? 5.0F : 1.0F) / 13.0F;
      sum += image.narrow(0, y, height - 2).narrow(1, x, width - 2).to(at::kFloat).mul(weight);
    }
  }
  result.narrow(0, 1, height - 2).narrow(1, 1, width - 2).copy_(sum.floor().to(at::kByte));
  return result;
}

void expect_blend(ColorOperation operation, const at::Tensor& degenerate, const at::Tensor& image) {
  for (const double factor : kFactors)
    EXPECT_TRUE(at::equal(operation(image, factor), blend_of(degenerate, image, factor)))
        << factor << " of " << image.sizes();
}

TEST(ColorOperations, EnhancersBlendInFloat32) {
  for (const at::Tensor& image : test_images()) {
    const at::Tensor gray = gray_values(image);
    const auto mean = static_cast<int64_t>(gray.to(at::kDouble).mean().item<double>() + 0.5);
    expect_blend(enhance_color, gray, image);
    expect_blend(enhance_contrast, at::full_like(image, mean), image);
    expect_blend(enhance_brightness, at::zeros_like(image), image);
    expect_blend(enhance_sharpness, smoothed(image), image);
  }
}

TEST(ColorOperations, SolarizeInvertsFromTheThresholdOn) {
  const at::Tensor image = at::tensor({0, 100, 101, 255}, at::kByte).view({2, 2, 1});
  EXPECT_TRUE(at::equal(solarize(image, 101), at::tensor({0, 100, 154, 0}, at::kByte).view({2, 2, 1})));
  for (const at::Tensor& any : test_images()) {
    EXPECT_TRUE(at::equal(solarize(any, 256), any));
    EXPECT_TRUE(at::equal(solarize(any, 0), 255 - any));
    EXPECT_TRUE(at::equal(solarize(any, 90), at::where(any.lt(90), any, 255 - any)));
  }
}

TEST(ColorOperations, PosterizeKeepsTheHighestBits) {
  for (const at::Tensor& image : test_images()) {
    EXPECT_TRUE(at::equal(posterize(image, 8), image));
    EXPECT_TRUE(at::equal(posterize(image, 0), at::zeros_like(image)));
    EXPECT_TRUE(at::equal(posterize(image, 3), image.bitwise_and(0xE0)));
  }
}

TEST(ColorOperations, AutocontrastStretchesEachChannel) {
  const at::Tensor image =
      at::tensor({10, 7, 0, 20, 7, 255, 60, 7, 0, 110, 7, 128}, at::kByte).view({2, 2, 3});
  const at::Tensor want =
      at::tensor({0, 7, 0, 25, 7, 255, 127, 7, 0, 255, 7, 128}, at::kByte).view({2, 2, 3});
  EXPECT_TRUE(at::equal(autocontrast(image), want));
}

// 512 pixels, of which 1 is brightest: a step is (512 - 1) / 255 = 2 pixels, and half a step comes first.
TEST(ColorOperations, EqualizeCountsThePixelsBelow) {
  at::Tensor image = at::full({16, 32, 1}, 40, at::kByte);
  image.view({-1}).narrow(0, 0, 11).fill_(10);
  image.view({-1})[511] = 200;
  at::Tensor want = at::full({16, 32, 1}, 6, at::kByte);
  want.view({-1}).narrow(0, 0, 11).fill_(0);
  want.view({-1})[511] = 255;
  EXPECT_TRUE(at::equal(equalize(image), want));
}

TEST(ColorOperations, OneValueStaysAsItIs) {
  for (const int64_t channels : {1, 3}) {
    const at::Tensor image = at::full({20, 20, channels}, 77, at::kByte);
    EXPECT_TRUE(at::equal(autocontrast(image), image));
    EXPECT_TRUE(at::equal(equalize(image), image));
  }
}

TEST(ColorOperations, RefuseOtherTensors) {
  for (const at::Tensor& image : {at::zeros({4, 4, 3}), at::zeros({4, 4, 2}, at::kByte),
                                  at::zeros({4, 4}, at::kByte), at::zeros({0, 4, 3}, at::kByte)}) {
    EXPECT_THROW(autocontrast(image), UserError) << image.sizes();
    EXPECT_THROW(enhance_color(image, 0.5), UserError) << image.sizes();
  }
}

}  // namespace
}  // namespace tutti
