#include "models/losses.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Loss, TargetThatDoesNotFitTheScoresIsAUserError) {
  EXPECT_THAT(
      [] {
        soft_cross_entropy(at::zeros({2, 3}), at::zeros({2, 4}));
      },
      ThrowsMessage<UserError>(HasSubstr("[2, 4]")));
}

TEST(Loss, ProbabilitiesWithoutAnyMassAreAUserError) {
  EXPECT_THAT(
      [] {
        soft_cross_entropy(at::zeros({2, 3}), at::zeros({2, 3}));
      },
      ThrowsMessage<UserError>(HasSubstr("probabilities are zero")));
}

TEST(Loss, IndexBeyondTheClassesIsAUserError) {
  const at::Tensor target = at::tensor({0, 3}, at::kLong);
  EXPECT_THAT(
      [&] {
        tutti::binary_cross_entropy_with_logits(at::zeros({2, 3}), target);
      },
      ThrowsMessage<UserError>(HasSubstr("class index 3 is too large")));
}

TEST(Loss, ItemsOfANegativeIndexAreOfNoClass) {
  const at::Tensor scores = at::randn({2, 3, 4});
  const at::Tensor target = at::tensor({0, 1, 2, -1, 2, 0, 1, -100}, at::kLong).view({2, 4});
  const at::Tensor known_scores = scores.narrow(2, 0, 3);
  const at::Tensor known = target.narrow(1, 0, 3);
  const DiceLossOptions options{.softmax = true};
  EXPECT_TRUE(at::allclose(dice_loss(scores, target, options), dice_loss(known_scores, known, options)));
  const BinaryCrossEntropyOptions each{.reduction = LossReduction::kNone, .scale_by_batch_size = false};
  const at::Tensor losses = tutti::binary_cross_entropy_with_logits(scores, target, each).select(2, 3);
  EXPECT_TRUE(at::allclose(losses, at::log1p(scores.select(2, 3).exp())));
}

TEST(Loss, SigmoidAndSoftmaxExcludeEachOther) {
  const at::Tensor target = at::zeros({1, 2}, at::kLong);
  EXPECT_THROW(dice_loss(at::zeros({1, 3, 2}), target, {.sigmoid = true, .softmax = true}), UserError);
}

TEST(Loss, AnIndexThatIsNoClassIsNamedWithTheNumberOfClasses) {
  const at::Tensor scores = at::zeros({3, 5});
  for (const int64_t bad : {5, -1, 255})
    EXPECT_THAT(message_of<UserError>([&] {
                  index_cross_entropy(scores, at::tensor({int64_t{1}, bad, int64_t{-100}}));
                }),
                testing::HasSubstr("a target is " + std::to_string(bad) + ", which is not in [0, 5)"));
  EXPECT_NO_THROW(index_cross_entropy(scores, at::tensor({1, -100, 4}, at::kLong)));
  EXPECT_NO_THROW(
      index_cross_entropy(scores, at::tensor({1, 255, 4}, at::kLong), LossReduction::kMean, {}, 255));
}

TEST(Loss, CountedTargetsAreThoseOfItsMean) {
  EXPECT_EQ(counted_targets(at::tensor({1, -100, 4, -100}, at::kLong)), 2);
  EXPECT_EQ(counted_targets(at::tensor({1, -100, 4, 0}, at::kLong).view({2, 2}).t()), 3);
  EXPECT_EQ(counted_targets(at::tensor({1, -100, 4}, at::kInt)), 2);
  EXPECT_EQ(counted_targets(at::tensor({0.0, 0.0, 0.25, 0.0, 0.5, 0.5}).view({3, 2})), 1.25);
  EXPECT_EQ(counted_targets(at::full({3, 7}, 1.0F / 7)), 3) << "but for rounding";
}

}  // namespace
}  // namespace tutti
