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

// At INIT, where Composer's sharding engines are told of the threshold, there are no gradients.
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

}  // namespace
}  // namespace tutti
