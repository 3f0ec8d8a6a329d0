#include "algorithms/augmentation/cutout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/algorithms/batch_algorithms.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

using enum Event;

TEST(CutOutTest, ActsOnTheWholeBatch) { EXPECT_EQ(events_of(CutOut({})), std::set{kAfterDataloader}); }

TEST(CutOutTest, CutsTheSameOnAllRanksAndElsewhereInTheNextBatch) {
  CutOut cutout({.num_holes = 2});
  expect_drawn_once_a_batch(cutout, kAfterDataloader);
}

// Of 8 x 10 pixels, none of which is 0, a hole within the image takes 4 x 4.
TEST(CutOutTest, AHoleIsASquareInAllImagesAndChannels) {
  const State state = image_state();
  const at::Tensor cut =
      cutout_batch(state.batch["input"], {{{.top = 1, .left = 5, .bottom = 5, .right = 9}}});
  EXPECT_EQ(cut.eq(0).sum().item<int64_t>(), 6 * 2 * 16);
  EXPECT_TRUE(at::equal(cut.slice(2, 1, 5).slice(3, 5, 9), at::zeros({6, 2, 4, 4})));
}

// Centres up to half a hole outside: a corner of the image is covered as often as its middle.
TEST(CutOutTest, UniformSamplingCoversEachPixelAlike) {
  const at::Tensor image = at::ones({1, 6, 6});
  for (const bool uniform : {false, true}) {
    at::Tensor covered = at::zeros({1, 6, 6});
    const auto draws = make_draws(3, {});
    for (int i = 0; i < 4000; ++i)
      covered += 1 - cutout_batch(image, *draws, {.length = 0.7, .uniform_sampling = uniform});
    const double corner = covered[0][0][0].item<double>(), middle = covered[0][3][3].item<double>();
    if (uniform)
      EXPECT_NEAR(corner / middle, 1.0, 0.15);
    else
      EXPECT_LT(corner / middle, 0.7);
  }
}

// A hole of side 5 reaches 2 pixels to either side of its centre. Python's -5 // 2 is -3.
TEST(CutOutTest, UniformCentresLieUpToHalfAHoleOutside) {
  const at::Tensor image = at::ones({1, 10, 10});
  const CutOutOptions options{.length = 0.5, .uniform_sampling = true};
  const auto cut_at = [&](int64_t row, int64_t column) {
    ScriptedDraws draws({.integer = {row, column}});
    return 100 - cutout_batch(image, draws, options).sum().item<int64_t>();
  };
  EXPECT_EQ(cut_at(5, 5), 16);
  EXPECT_EQ(cut_at(-1, 11), 1);
  EXPECT_EQ(cut_at(-3, 11), 0);
  EXPECT_THROW(cut_at(-4, 5), std::logic_error);
  EXPECT_THROW(cut_at(5, 12), std::logic_error);
}

}  // namespace
}  // namespace tutti
