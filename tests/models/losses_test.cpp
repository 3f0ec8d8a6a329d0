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
                  index_cross_entropy(scores, at::tensor({int64_t{-100}, bad, int64_t{1}}));
                }),
                testing::HasSubstr("a target is " + std::to_string(bad) + ", which is not in [0, 5)"));
  EXPECT_NO_THROW(index_cross_entropy(scores, at::tensor({1, -100, 4}, at::kLong)));
  EXPECT_NO_THROW(
      index_cross_entropy(scores, at::tensor({1, 255, 4}, at::kLong), LossReduction::kMean, {}, 255));
}

// An item with a sum below one counts less in the mean alone.
TEST(Loss, ProbabilitiesAreScaledInTheMeanAlone) {
  const at::Tensor scores = at::linspace(-1, 1, 6).view({2, 3}), target = at::full({2, 3}, 0.25);
  const at::Tensor each = -(target * at::log_softmax(scores, 1)).sum(1);
  const auto found = [&](LossReduction how) {
    return soft_cross_entropy(scores, target, {.reduction = how});
  };
  EXPECT_TRUE(at::allclose(found(LossReduction::kNone), each));
  EXPECT_TRUE(at::allclose(found(LossReduction::kSum), each.sum()));
  EXPECT_TRUE(at::allclose(found(LossReduction::kMean), each.sum() / 1.5));
}

TEST(Loss, DiceOfMasksLeavesPixelsOut) {
  const at::Tensor scores = at::linspace(-2, 2, 8).view({2, 1, 4});
  const at::Tensor target = at::tensor({1, 0, 1, -100, 0, 1, 1, -100}, at::kLong).view({2, 4});
  const DiceLossOptions sigmoid{.sigmoid = true};
  EXPECT_TRUE(at::allclose(dice_loss(scores, target, sigmoid),
                           dice_loss(scores.narrow(2, 0, 3), target.narrow(1, 0, 3), sigmoid)));
}

TEST(Loss, DiceOfOneClassHasNoSoftmax) {
  const at::Tensor predicted = at::full({2, 1, 4}, 0.25), target = at::ones({2, 4}, at::kLong);
  EXPECT_TRUE(at::equal(dice_loss(predicted, target, {.softmax = true}), dice_loss(predicted, target)));
}

TEST(Loss, DiceSquaresPredictionsAndTargets) {
  const at::Tensor predicted = at::full({1, 1, 2}, 0.5), target = at::full({1, 1, 2}, 0.25);
  const double both = 2 * 0.125, areas = 2 * 0.25 + 2 * 0.0625;
  EXPECT_NEAR(dice_loss(predicted, target, {.squared_pred = true}).item<double>(),
              1 - (2 * both + 1e-5) / (areas + 1e-5), 1e-6);
}

TEST(Loss, DiceSkipsAbsentClassesOnRequest) {
  const at::Tensor predicted = at::full({1, 2, 2}, 0.5);
  const at::Tensor target = at::tensor({1.0F, 1.0F, 0.0F, 0.0F}).view({1, 2, 2});
  EXPECT_NEAR(dice_loss(predicted, target, {.ignore_absent_classes = true}).item<double>(), 1 - 2.0 / 3,
              1e-5);
}

TEST(Loss, FocalOfHalfPrecisionIsComputedInFloat) {
  const at::Tensor scores = at::linspace(-3, 3, 12).view({4, 3}).to(at::kBFloat16);
  const at::Tensor target = at::tensor({0, 2, 1, 1}, at::kLong);
  const at::Tensor found = sigmoid_focal_loss(scores, target);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(found, sigmoid_focal_loss(scores.to(at::kFloat), target)));
}

// As of class indices, by libtorch: a logarithm in bfloat16 would be off by up to 2^-9 of it.
TEST(Loss, ProbabilitiesBesideScoresOf16BitsAreComputedInFloat) {
  const at::Tensor scores = at::linspace(-3, 3, 12).view({3, 4}), target = at::full({3, 4}, 0.25);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const at::Tensor narrow = scores.to(dtype), loss = soft_cross_entropy(narrow, target);
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
    EXPECT_NEAR(loss.item<double>(), soft_cross_entropy(narrow.to(at::kFloat), target).item<double>(), 1e-6);
  }
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
