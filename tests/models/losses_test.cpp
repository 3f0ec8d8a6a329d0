#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/losses/cross_entropy.h"
#include "models/losses/dice_loss.h"
#include "runtime/error.h"

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
      ThrowsMessage<UserError>(HasSubstr("above zero")));
}

TEST(Loss, IndexBeyondTheClassesIsAUserError) {
  const at::Tensor target = at::tensor({0, 3}, at::kLong);
  EXPECT_THAT(
      [&] {
        tutti::binary_cross_entropy_with_logits(at::zeros({2, 3}), target);
      },
      ThrowsMessage<UserError>(HasSubstr("class index of 3")));
}

TEST(Loss, NegativeIndexIsOfNoClass) {
  const at::Tensor scores = at::randn({2, 3, 4});
  const at::Tensor target = at::tensor({0, 1, -1, 2, 2, 0, 1, -100}, at::kLong).view({2, 4});
  at::Tensor dense = at::zeros({2, 3, 4});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t i = 0; i < 4; ++i)
      if (const auto index = target[n][i].item<int64_t>(); index >= 0) dense[n][index][i] = 1.0;
  const DiceLossOptions options{.softmax = true};
  EXPECT_TRUE(dice_loss(scores, target, options).equal(dice_loss(scores, dense, options)));
}

TEST(Loss, SigmoidAndSoftmaxExcludeEachOther) {
  const at::Tensor target = at::zeros({1, 2}, at::kLong);
  EXPECT_THROW(dice_loss(at::zeros({1, 3, 2}), target, {.sigmoid = true, .softmax = true}), UserError);
}

}  // namespace
}  // namespace tutti
