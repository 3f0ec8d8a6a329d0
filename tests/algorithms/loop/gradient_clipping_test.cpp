#include "algorithms/loop/gradient_clipping.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "training/state.h"

namespace tutti {
namespace {

TEST(GradientClippingTest, ActsOnceGradientsAreReduced) {
  const GradientClipping clipping(ClippingType::kNorm, 1.0);
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(clipping.match(event, State()), event == Event::kAfterTrainBatch) << name(event);
  }
}

// At INIT, where Composer's sharding engines get the threshold, there are no gradients.
TEST(GradientClippingTest, DoesNothingAtInitOfComposersRuns) {
  GradientClipping clipping(ClippingType::kNorm, 1.0);
  State state;
  state.composer = true;
  state.views.push_back(whole_view("weight", at::zeros({2})));
  state.views[0].grad = at::full({2}, 100.0);
  ASSERT_TRUE(clipping.match(Event::kInit, state));
  Logger logger;
  clipping.apply(Event::kInit, state, logger);
  EXPECT_EQ(state.views[0].grad.max().item<double>(), 100.0);
}

// The gradients of the state are 10 times those of the mean loss: (0.3, 0.4) of norm 0.5 is left as it is,
// (3, 4) of norm 5 is cut to 1.
TEST(GradientClippingTest, ThresholdIsOfTheMeanLossesGradient) {
  GradientClipping clipping(ClippingType::kNorm, 1.0);
  for (const double length : {0.5, 5.0}) {
    State state;
    state.grad_scale = 10.0;
    ParamView& view = state.views.emplace_back(whole_view("weight", at::zeros({2})));
    view.grad = at::tensor({0.6, 0.8}) * length * state.grad_scale;
    Logger logger;
    clipping.apply(Event::kAfterTrainBatch, state, logger);
    EXPECT_NEAR(view.grad.norm().item<double>(), std::min(length, 1.0) * 10.0, 1e-4);
  }
}

// Parameters and gradients of rank `index` of `ranks`.
std::vector<ParamView> shards(const std::vector<at::Tensor>& wholes, int ranks, int index) {
  std::vector<ParamView> views;
  for (std::size_t i = 0; i < wholes.size(); i += 2) {
    ParamView& view = views.emplace_back(shared_view("weight", wholes[i], {ranks, index}));
    view.grad = narrowed(wholes[i + 1], view.region).clone();
  }
  return views;
}

// The joined gradients after clipping. Each rank is called twice: the first call gives its summand.
std::vector<at::Tensor> clipped(const std::vector<at::Tensor>& wholes, ClippingType type, int ranks) {
  at::Tensor sum;
  for (int rank = ranks - 1; rank >= 0; --rank)
    apply_gradient_clipping(shards(wholes, ranks, rank), type, 0.05, 3.0,
                            [&](const at::Tensor& bins) { sum = sum.defined() ? sum + bins : bins.clone(); });
  std::vector<std::vector<at::Tensor>> parts(wholes.size() / 2);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto views = shards(wholes, ranks, rank);
    apply_gradient_clipping(views, type, 0.05, 3.0, [&](const at::Tensor& bins) { bins.copy_(sum); });
    for (std::size_t i = 0; i < views.size(); ++i) parts[i].push_back(views[i].grad);
  }
  std::vector<at::Tensor> joined;
  for (const auto& part : parts) joined.push_back(at::cat(part));
  return joined;
}

TEST(GradientClippingTest, DoesNotDependOnTheCut) {
  at::manual_seed(2);
  std::vector<at::Tensor> wholes;
  for (const Shape& shape : std::vector<Shape>{{33}, {1003, 3}, {70, 40}, {9, 3, 3, 3}, {2}, {2000}}) {
    wholes.push_back(at::randn(shape));
    wholes.push_back(at::randn(shape) * 7);
  }
  for (const auto type : {ClippingType::kNorm, ClippingType::kValue, ClippingType::kAdaptive}) {
    std::vector<ParamView> views = shards(wholes, 1, 0);
    apply_gradient_clipping(views, type, 0.05, 3.0);
    for (const int ranks : {2, 3, 4, 8}) {
      const auto joined = clipped(wholes, type, ranks);
      for (std::size_t i = 0; i < views.size(); ++i) {
        EXPECT_TRUE(joined[i].equal(views[i].grad)) << static_cast<int>(type) << " " << ranks << " " << i;
        EXPECT_FALSE(joined[i].equal(wholes[2 * i + 1]));
      }
    }
  }
}

}  // namespace
}  // namespace tutti
