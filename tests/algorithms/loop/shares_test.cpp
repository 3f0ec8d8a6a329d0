#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "algorithms/loop/ema.h"
#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/loop/layer_freezing.h"
#include "algorithms/loop/sam.h"
#include "algorithms/loop/swa.h"
#include "models/zoo/mlp.h"
#include "tests/training/scripted_services.h"
#include "tests/training/sharded_states.h"

namespace tutti {
namespace {

using Tensors = std::vector<at::Tensor>;
using Work = std::function<Tensors(State&)>;

constexpr int kRanks[] = {2, 3, 4, 8};

// Ranks with shares end on the bits of a rank that has all parameters; returns these.
Tensors expect_as_whole(const std::vector<WholeParameter>& parameters, const Work& work) {
  const Tensors whole = joined_over_shares(parameters, 1, work);
  for (const int ranks : kRanks) {
    const Tensors joined = joined_over_shares(parameters, ranks, work);
    for (std::size_t p = 0; p < whole.size(); ++p)
      EXPECT_TRUE(joined[p].equal(whole[p])) << parameters[p].name << " on " << ranks << " ranks";
  }
  return whole;
}

TEST(Shares, GradientsAreClippedAsIfTheyWereWhole) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto parameters = many_parameters(dtype);
    for (const auto type : {ClippingType::kNorm, ClippingType::kValue, ClippingType::kAdaptive}) {
      SCOPED_TRACE(static_cast<int>(type));
      const Tensors clipped = expect_as_whole(parameters, [&](State& state) {
        state.grad_scale = 3.0;
        Logger logger;
        GradientClipping(type, 0.05).apply(Event::kAfterTrainBatch, state, logger);
        Tensors gradients;
        for (const ParamView& view : state.views) gradients.push_back(view.grad);
        return gradients;
      });
      for (std::size_t p = 0; p < clipped.size(); ++p) EXPECT_FALSE(clipped[p].equal(parameters[p].grad));
    }
  }
}

TEST(Shares, NoGradientsAreClippedOnNoRank) {
  const auto parameters = many_parameters(at::kFloat);
  run_on_shares(parameters, 3, [](State& state) {
    for (ParamView& view : state.views) view.grad = at::Tensor();
    Logger logger;
    GradientClipping(ClippingType::kAdaptive, 0.05).apply(Event::kAfterTrainBatch, state, logger);
  });
}

class OnePass final : public Closure {
 public:
  double pass(const Move& move) override {
    const at::NoGradGuard no_grad;
    move();
    ++passes;
    return 0.0;
  }
  void step() override {}
  int passes = 0;
};

// The sum is over before the pass, in which one rank alone may run out of memory.
class WithoutSums final : public Closure {
 public:
  explicit WithoutSums(State& state) : state_(state) {}
  double pass(const Move& move) override {
    const auto services = std::make_shared<ScriptedServices>();
    services->of_shards = [](const at::Tensor&) { ADD_FAILURE() << "a sum within a pass"; };
    state_.services = services;
    return pass_.pass(move);
  }
  void step() override {}

 private:
  State& state_;
  OnePass pass_;
};

Tensors weights_of(const State& state) {
  Tensors weights;
  for (const ParamView& view : state.views) weights.push_back(view.tensor.detach());
  return weights;
}

TEST(Shares, SamClimbsAsFarAsIfTheyWereWhole) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto parameters = many_parameters(dtype);
    const Tensors moved = expect_as_whole(parameters, [](State& state) {
      state.grad_scale = 3.0;
      Logger logger;
      SAM sam({.rho = 5.0});
      sam.apply(Event::kAfterLoad, state, logger);
      OnePass closure;
      state.closure_step(closure);
      EXPECT_EQ(closure.passes, 1);
      return weights_of(state);
    });
    for (std::size_t p = 0; p < moved.size(); ++p) EXPECT_FALSE(moved[p].equal(parameters[p].weight));
  }
}

TEST(Shares, SamSumsBeforeItsPass) {
  run_on_shares(many_parameters(at::kFloat), 2, [](State& state) {
    Logger logger;
    SAM sam({});
    sam.apply(Event::kAfterLoad, state, logger);
    WithoutSums closure(state);
    state.closure_step(closure);
  });
}

// Four steps, each of which changes the weights.
template <class Average>
Tensors averaged(State& state, Average average) {
  const at::NoGradGuard no_grad;
  Logger logger;
  state.max_duration = Time(10, TimeUnit::kBatch);
  state.services->scheduled_lr = [] { return 0.5; };
  average.apply(Event::kBeforeLoad, state, logger);
  for (int step = 0; step < 4; ++step) {
    for (ParamView& view : state.views) view.tensor.mul_(1.37).add_(0.11);
    state.to_next_batch(1, 0, 1);
    if (average.match(Event::kBatchEnd, state)) average.apply(Event::kBatchEnd, state, logger);
  }
  Tensors averages;
  for (const auto& [name, tensor] : average.state_tensors()) averages.push_back(tensor);
  return averages;
}

TEST(Shares, AveragesAreThoseOfTheWholeWeights) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto parameters = many_parameters(dtype);
    expect_as_whole(parameters, [](State& state) { return averaged(state, EMA({.smoothing = 0.7})); });
    expect_as_whole(parameters, [](State& state) {
      return averaged(state, SWA({.swa_start = Time(0, TimeUnit::kBatch),
                                  .swa_end = Time(9, TimeUnit::kBatch),
                                  .update_interval = Time(1, TimeUnit::kBatch)}));
    });
  }
}

// The optimizer leaves what requires no gradient.
TEST(Shares, OfFrozenLayersRequireNoGradients) {
  State state;
  state.topology.share = {2, 1};
  state.max_duration = Time(4, TimeUnit::kEpoch);
  state.timestamp.epoch = 2;
  state.model =
      std::make_shared<SequentialNet>(std::vector<std::string>{"Linear(4, 6)", "ReLU()", "Linear(6, 3)"});
  materialise(*state.model, 1);
  state.parameters = parameters(*state.model);
  for (const auto& one : state.parameters)
    state.views.push_back(shared_view(one.name, one.parameter->tensor, state.topology.share));
  Logger logger;
  LayerFreezing(0.0, 1.0).apply(Event::kEpochEnd, state, logger);
  const auto requires_grad = [&] {
    std::vector<bool> found;
    for (const ParamView& view : state.views) found.push_back(view.tensor.requires_grad());
    return found;
  };
  EXPECT_EQ(requires_grad(), std::vector<bool>(4, true)) << "a half of one layer is none";
  state.timestamp.epoch = 4;
  LayerFreezing freezing(0.0, 1.0);
  freezing.apply(Event::kEpochEnd, state, logger);
  EXPECT_EQ(requires_grad(), (std::vector<bool>{false, false, true, true}));
  for (ParamView& view : state.views) view.tensor.set_requires_grad(true);
  freezing.apply(Event::kFitStart, state, logger);
  EXPECT_EQ(requires_grad(), (std::vector<bool>{false, false, true, true})) << "in a resumed run";
}

}  // namespace
}  // namespace tutti
