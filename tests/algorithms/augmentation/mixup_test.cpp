#include "algorithms/augmentation/mixup.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/label_smoothing.h"
#include "models/model.h"
#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using enum Event;

class Scores final : public Classifier {
 public:
  TensorTree forward(const TensorTree& batch) override {
    return batch["input"].flatten(1).narrow(1, 0, 3).sin();
  }
  const char* kind() const override { return "Scores"; }
};

State scored_state(int64_t step, int64_t first_sample = 0) {
  State state = image_state(step, first_sample);
  state.model = std::make_shared<Scores>();
  return state;
}

TEST(MixUpTest, MixesInputsBeforeForwardAndTargetsBeforeTheLoss) {
  EXPECT_EQ(events_of(MixUp()), (std::set{kBeforeForward, kBeforeLoss}));
  EXPECT_FALSE(MixUp().needs().interpolates_loss);
}

TEST(MixUpTest, MayMixTheLossInstead) {
  const MixUp mixup(0.2, {.interpolate_loss = true});
  EXPECT_EQ(events_of(mixup), (std::set{kBeforeForward, kBeforeBackward}));
  EXPECT_TRUE(mixup.needs().interpolates_loss);
}

// The samples are the numbers 0, 1, ..., so that partners and weights can be read off.
TEST(MixUpTest, TheMixIsOneForTheStepAndPartnersAreOfTheMicrobatch) {
  const auto mixed = [](int64_t first_sample) {
    State state = image_state(0, first_sample);
    state.batch.set("input", at::arange(6, at::kDouble));
    MixUp mixup(1.0);
    run(mixup, state, {kBeforeForward});
    return at::Tensor(state.batch["input"] - at::arange(6, at::kDouble));
  };
  // Differences are mixing * (partner - sample), with an integer in brackets.
  const at::Tensor one = mixed(0), other = mixed(6);
  EXPECT_FALSE(at::equal(one, other));
  const double mixing = draw_mixing(1.0, *image_state().draws("MixUp"));
  for (const at::Tensor& difference : {one, other}) {
    const at::Tensor steps = difference / mixing;
    EXPECT_TRUE(at::allclose(steps, steps.round(), 0, 1e-9));
    EXPECT_GT(steps.abs().max().item<double>(), 0.5);
  }
}

// soft_cross_entropy is linear in the targets, so both ways give one loss.
TEST(MixUpTest, MixingTargetsOrLossesIsTheSameForALinearLoss) {
  for (const at::Tensor& target : {at::arange(6) % 3, at::tensor({0, -100, 2, -100, 1, -100}, at::kLong)}) {
    std::vector<at::Tensor> losses;
    for (const bool interpolate : {false, true}) {
      State state = scored_state(1);
      state.batch.set("target", target);
      MixUp mixup(5.0, {.interpolate_loss = interpolate});
      run(mixup, state, {kBeforeForward});
      state.outputs = state.forward(state.batch);
      if (!interpolate) run(mixup, state, {kBeforeLoss});
      EXPECT_NEAR(state.model->loss_weight(state.batch), target.ge(0).sum().item<double>(), 1e-6);
      state.loss = state.loss_of(state.outputs, state.batch);
      if (interpolate) run(mixup, state, {kBeforeBackward});
      losses.push_back(state.loss);
    }
    EXPECT_TRUE(at::allclose(losses[0], losses[1])) << losses[0] << losses[1];
  }
}

TEST(MixUpTest, SeveralLabelsAreMixedForLossesOfThem) {
  for (const char* loss : {"bce_with_logits", "binary_cross_entropy_with_logits"}) {
    std::vector<at::Tensor> losses;
    for (const bool interpolate : {false, true}) {
      State state = scored_state(1);
      choose_loss(*state.model, Setting(std::string(loss), "model.loss", {}));
      state.batch.set("target", at::arange(18).remainder(5).gt(2).view({6, 3}).to(at::kLong));
      MixUp mixup(5.0, {.interpolate_loss = interpolate});
      run(mixup, state, {kBeforeForward});
      state.outputs = state.forward(state.batch);
      if (!interpolate) run(mixup, state, {kBeforeLoss});
      EXPECT_EQ(state.model->loss_weight(state.batch), 6);
      state.loss = state.loss_of(state.outputs, state.batch);
      if (interpolate) run(mixup, state, {kBeforeBackward});
      losses.push_back(state.loss);
    }
    EXPECT_TRUE(at::allclose(losses[0], losses[1])) << loss << losses[0] << losses[1];
  }
}

// The mix of PyTorch's losses of both targets, in which those of -100 do not count.
TEST(MixUpTest, SmoothTargetsThatAreMixedAreSmoothInPart) {
  State state = scored_state(1);
  const at::Tensor target = at::tensor({0, -100, 2, -100, 1, -100}, at::kLong),
                   inputs = at::arange(6, at::kDouble);
  state.batch = TensorTree::Children{{"input", inputs}, {"target", target}};
  MixUp mixup(5.0);
  run(mixup, state, {kBeforeForward});
  const double mixing = draw_mixing(5.0, *state.draws("MixUp"));
  const at::Tensor partners = ((state.batch["input"] - inputs) / mixing + inputs).round().to(at::kLong);
  state.outputs = at::linspace(-1, 2, 18).sin().view({6, 3});
  run(mixup, state, {kBeforeLoss});
  LabelSmoothing smoothing(0.25);
  run(smoothing, state, {kBeforeLoss});
  const auto loss_of = [&](const at::Tensor& of) {
    return at::cross_entropy_loss(state.outputs.tensor(), of, {}, at::Reduction::Mean, -100, 0.25);
  };
  const at::Tensor wanted = at::lerp(loss_of(target), loss_of(target.index_select(0, partners)), mixing);
  EXPECT_TRUE(at::allclose(state.loss_of(state.outputs, state.batch), wanted));
}

TEST(MixUpTest, IntegersBecomeFloats) {
  const at::Tensor bytes = at::tensor({0, 100}, at::kByte).view({2, 1});
  const MixedUp mixed = mixup_batch(bytes, at::arange(2), 0.25, at::tensor({1, 0}));
  EXPECT_TRUE(at::equal(mixed.input, at::tensor({25.0F, 75.0F}).view({2, 1})));
  EXPECT_TRUE(at::equal(mixed.target_perm, at::tensor({1, 0})));
}

TEST(MixUpTest, TheSampleItselfIsAlwaysTheLargerPart) {
  const auto draws = make_draws(2, {});
  double largest = 0.0;
  for (int i = 0; i < 200; ++i) largest = std::max(largest, draw_mixing(5.0, *draws));
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.4);
}

}  // namespace
}  // namespace tutti
