#include "algorithms/augmentation/colout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using enum Event;

TEST(ColOutTest, ActsOnTheWholeBatch) { EXPECT_EQ(events_of(ColOut({})), std::set{kAfterDataloader}); }

TEST(ColOutTest, MayBeATransformOfTheTrainingDataInstead) {
  State state;
  ColOut colout({.batch = false});
  EXPECT_EQ(events_of(colout), std::set{kFitStart});
  Logger logger;
  for (int fit = 0; fit < 2; ++fit) colout.apply(kFitStart, state, logger);
  ASSERT_EQ(state.added_transforms.size(), 1U);
  EXPECT_EQ(state.added_transforms[0].name, "ColOut");
}

TEST(ColOutTest, DropsTheSameOnAllRanksAndOthersInTheNextBatch) {
  ColOut colout(ColOutAlgorithm{{.p_row = 0.5, .p_col = 0.5}});
  expect_drawn_once_a_batch(colout, kAfterDataloader);
}

// The pixels of a grid that counts rows in tens and columns in ones.
TEST(ColOutTest, RowsAndColumnsStayInTheirOrder) {
  const at::Tensor grid = at::arange(8).view({8, 1}) * 10 + at::arange(10);
  const auto draws = make_draws(1, {});
  const at::Tensor kept = colout_batch(grid.expand({3, 2, 8, 10}), *draws, {.p_row = 0.5, .p_col = 0.3});
  ASSERT_EQ(kept.sizes(), (std::vector<int64_t>{3, 2, 4, 7}));
  EXPECT_TRUE(at::equal(kept, kept[0][0].expand({3, 2, 4, 7})));
  EXPECT_TRUE((kept.diff(1, -1) > 0).all().item<bool>());
  EXPECT_TRUE((kept.diff(1, -2) > 9).all().item<bool>());
}

// An image's mask: the same numbers as the image, so the same numbers remain.
TEST(ColOutTest, TargetsThatAreAsLargeAsTheImagesLoseTheSame) {
  State state = image_state();
  state.batch.set("target", state.batch["input"].select(1, 0));
  ColOut colout({});
  run(colout, state, {kAfterDataloader});
  EXPECT_TRUE(at::equal(state.batch["target"], state.batch["input"].select(1, 0)));
  ColOut of_input(ColOutAlgorithm{{.resize_target = false}});
  run(of_input, state, {kAfterDataloader});
  EXPECT_NE(state.batch["target"].sizes(), state.batch["input"].select(1, 0).sizes());
}

}  // namespace
}  // namespace tutti
