#include "algorithms/loop/label_smoothing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/mixup.h"
#include "models/loss.h"
#include "models/model.h"
#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

using enum Event;

TEST(LabelSmoothingTest, ActsAroundTheLoss) {
  EXPECT_EQ(events_of(LabelSmoothing()), (std::set{kBeforeLoss, kAfterLoss}));
}

class WeightedClassifier final : public Classifier {
 public:
  WeightedClassifier() {
    set_loss(make_loss(
        section_with({{"kind", std::string("cross_entropy")}, {"weight", list_value({0.2, 3.0, 1.0})}})));
  }
  TensorTree forward(const Batch& batch) override { return batch["input"]; }
  const char* kind() const override { return "WeightedClassifier"; }
};

// With 3 classes and smoothing 0.3 every class has 0.1, and the target's 0.7 more.
TEST(LabelSmoothingTest, TargetsAreSmoothForTheLossAlone) {
  State state = image_state();
  const at::Tensor labels = state.batch["target"];
  state.outputs = at::zeros({6, 3});
  state.model = std::make_shared<WeightedClassifier>();
  LabelSmoothing smoothing(0.3);
  run(smoothing, state, {kBeforeLoss});
  EXPECT_TRUE(at::allclose(state.batch["target"], at::one_hot(labels, 3) * 0.7 + 0.1));
  state.loss = at::ones({});
  run(smoothing, state, {kAfterLoss});
  EXPECT_TRUE(state.batch["target"].is_same(labels));
  EXPECT_EQ(state.batch.children().size(), 2U);
}

TEST(LabelSmoothingTest, ClassWeightsDivideAsInPyTorchsCrossEntropy) {
  State state = image_state();
  const at::Tensor scores = at::arange(18, at::kFloat).sin().view({6, 3});
  const at::Tensor target = at::tensor({0, 1, 2, 0, 0, -100}, at::kLong),
                   weight = at::tensor({0.2F, 3.0F, 1.0F});
  state.batch.set("target", target);
  state.outputs = scores;
  state.model = std::make_shared<WeightedClassifier>();
  LabelSmoothing smoothing(0.3);
  run(smoothing, state, {kBeforeLoss});
  state.loss = state.model->loss(state.outputs, state.batch);
  run(smoothing, state, {kAfterLoss});
  EXPECT_NEAR(state.loss.item<double>(),
              at::cross_entropy_loss(scores, target, weight, at::Reduction::Mean, -100, 0.3).item<double>(),
              1e-6);
  EXPECT_NEAR(state.loss_weight, 3 * 0.2 + 3.0 + 1.0, 1e-6) << "what the mean is over";
}

// As PyTorch's cross_entropy of probabilities, which divides by their number.
TEST(LabelSmoothingTest, ClassWeightsDivideAlikeBeforeAndBehindMixUp) {
  const at::Tensor scores = at::arange(18, at::kFloat).sin().view({6, 3});
  const at::Tensor target = at::tensor({0, 1, 2, 0, 0, 1}, at::kLong),
                   weight = at::tensor({0.2F, 3.0F, 1.0F});
  std::vector<at::Tensor> losses;
  for (const bool is_first : {true, false}) {
    State state = image_state();
    state.batch.set("target", target);
    state.outputs = scores;
    state.model = std::make_shared<WeightedClassifier>();
    LabelSmoothing smoothing(0.3);
    MixUp mixup(1.0);
    run(mixup, state, {kBeforeForward});
    if (is_first) run(smoothing, state, {kBeforeLoss});
    run(mixup, state, {kBeforeLoss});
    const at::Tensor mixed = state.batch["target"];
    if (!is_first) run(smoothing, state, {kBeforeLoss});
    const at::Tensor probabilities = is_first ? mixed : mixed * 0.7 + 0.1;
    state.loss = state.model->loss(state.outputs, state.batch);
    run(smoothing, state, {kAfterLoss});
    EXPECT_NEAR(state.loss.item<double>(),
                at::cross_entropy_loss(scores, probabilities, weight, at::Reduction::Mean).item<double>(),
                1e-6);
    EXPECT_NEAR(state.loss_weight, 6.0, 1e-6);
    losses.push_back(state.loss);
  }
  EXPECT_NEAR(losses[0].item<double>(), losses[1].item<double>(), 1e-6);
}

TEST(LabelSmoothingTest, LabelsOfASingleScoreAreAUserError) {
  EXPECT_THROW(smooth_labels(at::zeros({4, 1}), at::ones({4}, at::kLong)), UserError);
}

// A retry begins again at BEFORE_FORWARD, and an aborted attempt must have given back its memory.
TEST(LabelSmoothingTest, HoldsNothingOfAnAttemptThatIsAborted) {
  State state = image_state();
  const at::Tensor labels = state.batch["target"].clone();
  state.batch.set("target", labels);
  state.outputs = at::zeros({6, 3});
  LabelSmoothing smoothing;
  run(smoothing, state, {kBeforeLoss});
  state.batch = {};
  EXPECT_EQ(labels.use_count(), 1U);
}

// PyTorch's cross_entropy by its formula: -100 has no weights. Composer's other negative ones have the rest.
TEST(LabelSmoothingTest, TargetsThatDoNotCountHaveNoWeights) {
  const at::Tensor smooth = smooth_labels(at::zeros({3, 4}), at::tensor({-100, 2, -1}, at::kLong), 0.2);
  EXPECT_TRUE(
      at::allclose(smooth, at::tensor({0.0, 0.0, 0.0, 0.0, 0.05, 0.05, 0.85, 0.05, 0.05, 0.05, 0.05, 0.05})
                               .to(at::kFloat)
                               .view({3, 4})));
  const at::Tensor dense = at::tensor({0.0F, 0.0F, 0.5F, 0.0F, 1.0F, 1.0F}).view({3, 2});
  EXPECT_TRUE(at::allclose(smooth_labels(at::zeros({3, 2}), dense, 0.2),
                           at::tensor({0.0F, 0.0F, 0.45F, 0.05F, 0.9F, 0.9F}).view({3, 2})))
      << "nothing, a half, and two classes";
}

TEST(LabelSmoothingTest, DenseTargetsAreNotWritten) {
  const at::Tensor target = at::eye(3), logits = at::zeros({3, 3});
  EXPECT_TRUE(at::allclose(smooth_labels(logits, target, 1.0), at::full({3, 3}, 1.0 / 3)));
  EXPECT_TRUE(at::equal(target, at::eye(3)));
}

}  // namespace
}  // namespace tutti
