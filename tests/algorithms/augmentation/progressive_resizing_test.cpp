#include "algorithms/augmentation/progressive_resizing.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using enum Event;

TEST(ProgressiveResizingTest, ActsOnTheWholeBatch) {
  EXPECT_EQ(events_of(ProgressiveResizing({})), std::set{kAfterDataloader});
}

TEST(ProgressiveResizingTest, CropsTheSamePlaceOnAllRanks) {
  ProgressiveResizing crops({.mode = ResizeMode::kCrop, .size_increment = 1});
  expect_drawn_once_a_batch(crops, kAfterDataloader);
}

// The default: half the size up to half of the training, all of it from 0.8 on; widths are multiples of 2.
TEST(ProgressiveResizingTest, ImagesGrowToTheirFullSize) {
  ProgressiveResizing resizing({.size_increment = 2});
  const auto width = [&](int64_t step) {
    return input_after(resizing, image_state(step), kAfterDataloader).size(3);
  };
  EXPECT_EQ(width(0), 4);  // 5 / 2 is rounded to the even 2
  EXPECT_EQ(width(49), 4);
  EXPECT_EQ(width(66), 8);
  EXPECT_EQ(width(80), 10);
  EXPECT_EQ(width(99), 10);
}

TEST(ProgressiveResizingTest, WithoutATimeToGrowImagesAreFullAtOnce) {
  ProgressiveResizing resizing({.finetune_fraction = 0.2, .delay_fraction = 0.8, .size_increment = 1});
  EXPECT_EQ(input_after(resizing, image_state(79), kAfterDataloader).size(3), 5);
  EXPECT_EQ(input_after(resizing, image_state(80), kAfterDataloader).size(3), 10);
}

// Pixel i of a row is pixel floor(i / scale) of the row before, in float32, however wide the images are.
TEST(ProgressiveResizingTest, PicksTheNearestPixelsOfNarrowAndWideImages) {
  const double scale = 0.7;
  for (const int64_t width : {10, 90, 100, 700}) {
    const at::Tensor row = at::arange(width, at::kFloat).expand({2, 3, 4, width});
    const at::Tensor small = resize_batch(row, row, scale, ResizeMode::kResize, false, *random_draws()).first;
    ASSERT_EQ(small.sizes(), (std::vector<int64_t>{2, 3, 2, static_cast<int64_t>(width * scale)}));
    for (int64_t i = 0; i < small.size(3); ++i)
      EXPECT_EQ(small[1][2][1][i].item<float>(),
                std::floor(static_cast<float>(i) * static_cast<float>(1 / scale)));
  }
}

// A mask of half the size, cropped at half the place: both hold the numbers of the same place.
TEST(ProgressiveResizingTest, TargetsAreCroppedAtTheSamePlace) {
  const at::Tensor mask = at::arange(16).view({1, 4, 4});
  const at::Tensor images = mask.repeat_interleave(2, 1).repeat_interleave(2, 2).unsqueeze(1);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto draws = make_draws(seed, {});
    const auto [image, target] = resize_batch(images, mask, 0.5, ResizeMode::kCrop, true, *draws);
    EXPECT_EQ(image[0][0][0][0].item<int64_t>(), target[0][0][0].item<int64_t>());
    EXPECT_EQ(target.sizes(), (std::vector<int64_t>{1, 2, 2}));
  }
}

TEST(ProgressiveResizingTest, TargetsOfThePixelsAreResizedToo) {
  State state = image_state();
  const auto tried = [&](const Shape& target, bool resize_targets) {
    Batch batch = state.batch;
    batch.set("target", at::zeros(target));
    ProgressiveResizing({.resize_targets = resize_targets}).try_on(state, batch);
    return batch["target"].sizes().vec();
  };
  EXPECT_THAT(
      [&] {
        tried({6, 8, 10}, false);
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("expected resize_targets = true")));
  EXPECT_EQ(tried({6, 8, 10}, true), (Shape{6, 3, 4}));  // 5 is no multiple of 4
  EXPECT_EQ(tried({6, 3}, false), (Shape{6, 3}));
}

}  // namespace
}  // namespace tutti
