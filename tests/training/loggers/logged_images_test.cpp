#include "training/loggers/logged_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

// [1, 1, 1, n]
std::vector<uint8_t> pixels_of(const at::Tensor& row) {
  return images_of("a", row.view({1, 1, 1, -1}), 8, false).value().pixels;
}

TEST(LoggedImagesTest, PixelsAreShownByWhatLiesBetweenThem) {
  EXPECT_THAT(pixels_of(at::tensor({0.0, 0.5, 1.0})), ElementsAre(0, 128, 255));
  EXPECT_THAT(pixels_of(at::tensor({0.0, 0.5, 254.6, 300.0})), ElementsAre(0, 1, 255, 255));
  EXPECT_THAT(pixels_of(at::tensor({-1.0, 0.0, 3.0})), ElementsAre(0, 64, 255));
  EXPECT_THAT(pixels_of(at::tensor({-1.0, -1.0})), Each(0));
  EXPECT_THAT(pixels_of(at::tensor({0, 1, 200}, at::kByte)), ElementsAre(0, 1, 200));
  EXPECT_THAT(pixels_of(at::tensor({-5, 1, 999}, at::kLong)), ElementsAre(0, 1, 255));
  EXPECT_THAT(pixels_of(at::tensor({0.0, std::nan(""), 1.0})), ElementsAre(0, 0, 255));
  EXPECT_THAT(pixels_of(at::tensor({0.0, 0.5}).to(at::kBFloat16)), ElementsAre(0, 128));
}

TEST(LoggedImagesTest, EachImageIsShownByItself) {
  const at::Tensor two = at::tensor({-1.0, 1.0, 0.0, 1.0}).view({2, 1, 2});
  EXPECT_THAT(images_of("a", two, 8, false)->pixels, ElementsAre(0, 255, 0, 255));
  EXPECT_THAT(images_of("a", two, 1, false)->pixels, ElementsAre(0, 255)) << "the first alone";
}

TEST(LoggedImagesTest, ChannelsComeLast) {
  const at::Tensor batch = at::arange(2 * 3 * 4 * 5, at::kInt).view({2, 3, 4, 5});
  const auto found = images_of("name", batch, 8, /*channels_last=*/false).value();
  EXPECT_EQ(found.name, "name");
  EXPECT_THAT((std::vector{found.count, found.height, found.width, found.channels}), ElementsAre(2, 4, 5, 3));
  EXPECT_THAT(found.pixels, SizeIs(120));
  EXPECT_EQ(found.pixels[((1 * 4 + 2) * 5 + 3) * 3 + 1], ((1 * 3 + 1) * 4 + 2) * 5 + 3);
  const auto given = images_of("name", batch.permute({0, 2, 3, 1}), 8, /*channels_last=*/true).value();
  EXPECT_EQ(given.pixels, found.pixels);
}

TEST(LoggedImagesTest, ShapesOfNoImageAreRefused) {
  const std::vector<std::vector<int64_t>> shapes = {{8, 64}, {8, 2, 4, 4}, {8, 3, 4, 4, 4}, {8, 1, 1}};
  for (const auto& shape : shapes)
    EXPECT_FALSE(images_of("a", at::zeros(shape), 8, false)) << testing::PrintToString(shape);
  EXPECT_FALSE(images_of("a", at::zeros({8, 3, 4, 4}), 8, /*channels_last=*/true));
  EXPECT_TRUE(images_of("a", at::zeros({8, 4, 4}), 8, /*channels_last=*/true));
}

TEST(LoggedImagesTest, LoggedPixelsAreACopyOfTheBatch) {
  at::Tensor batch = at::zeros({1, 2, 2});
  const auto found = images_of("a", batch, 8, false);
  batch.fill_(1);
  EXPECT_THAT(found->pixels, Each(0));
}

TEST(LoggedImagesTest, MasksHaveTheLikeliestClassOfEachPixel) {
  const at::Tensor scores =
      at::tensor({1.0, 5.0, 2.0, 4.0, 3.0, 0.0}).view({1, 3, 1, 2}).set_requires_grad(true);
  const auto mask = mask_of_scores("prediction", scores, 8, false).value();
  EXPECT_THAT(mask.classes, ElementsAre(2, 0));
  EXPECT_THAT((std::vector{mask.height, mask.width}), ElementsAre(1, 2));
  EXPECT_THAT(mask_of_scores("a", scores.permute({0, 2, 3, 1}), 8, true)->classes, ElementsAre(2, 0));
  const auto truth = mask_of_classes("a", at::tensor({0, -100, 2, 1}, at::kLong).view({2, 1, 2}), 8, 3);
  EXPECT_THAT(truth->classes, ElementsAre(0, 3, 2, 1));
  EXPECT_FALSE(mask_of_scores("a", at::zeros({2, 3}), 8, false));
  EXPECT_FALSE(mask_of_classes("a", at::zeros({2, 1, 2}), 8, 3)) << "no whole numbers";
}

TEST(LoggedImagesTest, AGridHasEightToARow) {
  const at::Tensor nine = at::arange(1, 10, at::kInt).view({9, 1, 1}).expand({9, 2, 3});
  const LoggedImages grid = grid_of(images_of("a", nine, 9, false).value());
  EXPECT_THAT((std::vector{grid.count, grid.height, grid.width, grid.channels}), ElementsAre(1, 4, 24, 1));
  for (int64_t y = 0; y < 4; ++y)
    for (int64_t x = 0; x < 24; ++x) {
      const int64_t which = y / 2 * 8 + x / 3;
      EXPECT_EQ(grid.pixels[y * 24 + x], which < 9 ? which + 1 : 0) << y << ' ' << x;
    }
}

// The first colours of PASCAL VOC: black, maroon, green, olive, navy; then 64, 0, 0 of class 8.
TEST(LoggedImagesTest, ClassesHaveTheColoursOfPascalVoc) {
  const LoggedImages grid = grid_of(LoggedMask{"a", 1, 6, {0, 1, 2, 3, 4, 8}});
  EXPECT_THAT(grid.pixels, ElementsAre(0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0, 0, 0, 128, 64, 0, 0));
}

}  // namespace
}  // namespace tutti
