// Transforms whose parameters are drawn: their ranges, order and effect.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/transforms/augmentations/color_jitter.h"
#include "data/transforms/augmentations/color_operations.h"
#include "data/transforms/augmentations/cutout.h"
#include "data/transforms/image_transforms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

TEST(RandomResizedCrop, PartsHaveTheAreasAndRatiosOfTheirRanges) {
  const auto draws = make_draws(3, {"parts", 0, 0});
  const ImageSize image{300, 400};
  double least = 1, most = 0;
  for (int i = 0; i < 500; ++i) {
    const auto [top, left, size] = draw_part(image, {0.1, 0.5}, {0.5, 2}, *draws);
    const double area = static_cast<double>(size.height * size.width) / (300 * 400);
    const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    EXPECT_TRUE(area > 0.095 && area < 0.505 && ratio > 0.49 && ratio < 2.05) << area << " " << ratio;
    EXPECT_TRUE(top >= 0 && left >= 0 && top + size.height <= 300 && left + size.width <= 400);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_LT(least, 0.12);
  EXPECT_GT(most, 0.45);
}

// torchvision: the whole image, cut to a ratio within the range, in the middle.
TEST(RandomResizedCrop, APartThatNeverFitsIsTheMiddle) {
  const auto draws = make_draws(3, {"parts", 0, 0});
  EXPECT_EQ(draw_part({10, 100}, {2, 3}, {0.75, 4.0 / 3}, *draws), (Region{0, 43, {10, 13}}));
  EXPECT_EQ(draw_part({100, 10}, {2, 3}, {0.75, 4.0 / 3}, *draws), (Region{43, 0, {13, 10}}));
  EXPECT_EQ(draw_part({10, 11}, {2, 3}, {0.75, 4.0 / 3}, *draws), (Region{0, 0, {10, 11}}));
}

TEST(RandomErasing, SetsARectangleToTheValue) {
  const RandomErasingOptions options{.p = 1, .value = {7, 8, 9}};
  const auto draws = make_draws(5, {"erasing", 0, 0});
  const at::Tensor bytes = at::full({40, 50, 3}, 200, at::kByte);
  for (int i = 0; i < 20; ++i) {
    const at::Tensor erased = random_erasing(bytes, options, *draws);
    const at::Tensor changed = erased.select(2, 0).ne(200);
    const int64_t rows = changed.any(1).sum().item<int64_t>(), columns = changed.any(0).sum().item<int64_t>();
    EXPECT_EQ(changed.sum().item<int64_t>(), rows * columns) << "a rectangle";
    const double area = static_cast<double>(rows * columns) / (40 * 50);
    EXPECT_TRUE(area > 0.015 && area < 0.34) << area;
    EXPECT_TRUE(erased.select(2, 2).masked_select(changed).eq(9).all().item<bool>());
  }
  EXPECT_TRUE(at::equal(random_erasing(bytes, {.p = 0}, *draws), bytes));
  const at::Tensor floats = at::ones({3, 40, 50});
  const at::Tensor erased = random_erasing(floats, options, *draws);
  EXPECT_EQ(erased.select(0, 1).max().item<float>(), 8);
  EXPECT_EQ(floats.max().item<float>(), 1) << "the given image is not written";
}

TEST(ColorJitter, ChangesWhatHasARange) {
  const at::Tensor image = at::randint(256, {9, 8, 3}).to(at::kByte);
  const auto jittered = [&](const ColorJitterOptions& ranges, int64_t place) {
    return color_jitter(image, ranges, *make_draws(5, {"jitter", 0, place}));
  };
  EXPECT_TRUE(at::equal(jittered({}, 0), image));
  EXPECT_TRUE(at::equal(jittered({.brightness = {0.5, 0.5}}, 0), enhance_brightness(image, 0.5)));
  EXPECT_TRUE(at::equal(jittered({.contrast = {0.5, 0.5}}, 0), enhance_contrast(image, 0.5)));
  EXPECT_TRUE(at::equal(jittered({.saturation = {0.5, 0.5}}, 0), enhance_color(image, 0.5)));
  EXPECT_TRUE(at::equal(jittered({.hue = {0.2, 0.2}}, 0), adjust_hue(image, 0.2)));
  const at::Tensor one = enhance_contrast(enhance_brightness(image, 1.7), 1.6);
  const at::Tensor other = enhance_brightness(enhance_contrast(image, 1.6), 1.7);
  int ones = 0, others = 0;
  for (int64_t place = 0; place < 20; ++place) {
    const at::Tensor both = jittered({.brightness = {1.7, 1.7}, .contrast = {1.6, 1.6}}, place);
    ones += at::equal(both, one);
    others += at::equal(both, other);
  }
  EXPECT_EQ(ones + others, 20);
  EXPECT_TRUE(ones > 0 && others > 0) << "in both orders";
}

}  // namespace
}  // namespace tutti
