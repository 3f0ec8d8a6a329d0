#include "data/transforms/augmentations/affine_operations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/error.h"
#include "tensors/draws.h"
#include "tests/data/transforms/test_images.h"

namespace tutti {
namespace {

// Pillow's bilinear pixel, written as its rule reads.
double pixel_at(const at::TensorAccessor<uint8_t, 3>& image, double x, double y, int64_t channel) {
  const int64_t height = image.size(0), width = image.size(1);
  if (x < 0 || x >= static_cast<double>(width) || y < 0 || y >= static_cast<double>(height)) return 0;
  const double left = std::floor(x - 0.5), top = std::floor(y - 0.5);
  const double dx = x - 0.5 - left, dy = y - 0.5 - top;
  const auto value = [&](double row, double column) -> double {
    return image[std::clamp<int64_t>(static_cast<int64_t>(row), 0, height - 1)]
                [std::clamp<int64_t>(static_cast<int64_t>(column), 0, width - 1)][channel];
  };
  const auto in_row = [&](double row) {
    return value(row, left) + (value(row, left + 1) - value(row, left)) * dx;
  };
  const double above = in_row(top);
  const double below = top + 1 < static_cast<double>(height) ? in_row(top + 1) : above;
  return above + (below - above) * dy;
}

at::Tensor affine_by_rule(const at::Tensor& image, const AffineMatrix& m) {
  at::Tensor result = at::empty(image.sizes(), at::kByte);
  const auto in = image.accessor<uint8_t, 3>();
  auto out = result.accessor<uint8_t, 3>();
  for (int64_t y = 0; y < image.size(0); ++y) {
    for (int64_t x = 0; x < image.size(1); ++x) {
      const double middle_x = static_cast<double>(x) + 0.5, middle_y = static_cast<double>(y) + 0.5;
      const double from_x = m[0] * middle_x + m[1] * middle_y + m[2];
      const double from_y = m[3] * middle_x + m[4] * middle_y + m[5];
      for (int64_t c = 0; c < image.size(2); ++c)
        out[y][x][c] = static_cast<uint8_t>(pixel_at(in, from_x, from_y, c));
    }
  }
  return result;
}

TEST(AffineOperations, EveryPixelIsThatOfTheRule) {
  const auto draws = make_draws(3, {.name = "matrices"});
  for (const at::Tensor& image : test_images()) {
    for (int i = 0; i < 20; ++i) {
      AffineMatrix matrix;
      for (double& entry : matrix) entry = draws->uniform(-1.5, 1.5);
      matrix[2] *= 10;
      matrix[5] *= 10;
      EXPECT_TRUE(at::equal(affine(image, matrix), affine_by_rule(image, matrix))) << image.sizes() << i;
    }
  }
}

TEST(AffineOperations, ShearsAndShiftsAreAffine) {
  for (const at::Tensor& image : test_images()) {
    for (const double s : {-0.3, -0.01, 0.0, 0.07, 0.25, 1.0}) {
      EXPECT_TRUE(at::equal(shear_x(image, s), affine_by_rule(image, {1, s, 0, 0, 1, 0}))) << s;
      EXPECT_TRUE(at::equal(shear_y(image, s), affine_by_rule(image, {1, 0, 0, s, 1, 0}))) << s;
    }
    for (const int64_t t : {-100, -34, -3, 0, 1, 9, 33}) {
      const auto shift = static_cast<double>(t);
      EXPECT_TRUE(at::equal(translate_x(image, t), affine_by_rule(image, {1, 0, shift, 0, 1, 0}))) << t;
      EXPECT_TRUE(at::equal(translate_y(image, t), affine_by_rule(image, {1, 0, 0, 0, 1, shift}))) << t;
    }
  }
}

TEST(AffineOperations, QuarterTurnsMoveWholePixels) {
  for (const at::Tensor& image : test_images()) {
    EXPECT_TRUE(at::equal(rotate(image, 0), image));
    EXPECT_TRUE(at::equal(rotate(image, -720), image));
    EXPECT_TRUE(at::equal(rotate(image, 180), image.flip({0, 1})));
    if (image.size(0) != image.size(1)) continue;
    EXPECT_TRUE(at::equal(rotate(image, 90), at::rot90(image, 1)));
    EXPECT_TRUE(at::equal(rotate(image, -90), at::rot90(image, -1)));
  }
}

TEST(AffineOperations, RefuseOtherTensors) {
  EXPECT_THROW(rotate(at::zeros({4, 4, 3}), 10), UserError);
  EXPECT_THROW(rotate(at::zeros({4}, at::kByte), 10), UserError);
  EXPECT_THROW(translate_x(at::zeros({4, 4, 4}, at::kByte), 1), UserError);
}

}  // namespace
}  // namespace tutti
