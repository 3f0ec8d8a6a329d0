#include "training/callbacks/monitors/optimizer_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/callbacks/by_hand.h"
#include "tests/training/sharded_states.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/options.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST_F(WithOptimizer, OptimizerMonitorLogsNormsOfTheMeanLosssGradients) {
  optimizer("sgd");
  OptimizerMonitor monitor(true, 1);
  step(monitor);
  EXPECT_THAT(logged_.values,
              UnorderedElementsAre(Pair("l2_norm/grad/a.weight", 5.0), Pair("l2_norm/grad/b", 12.0),
                                   Pair("l2_norm/grad/global", 13.0)));
}

TEST_F(WithOptimizer, OptimizerMonitorKeepsItsInterval) {
  optimizer("sgd");
  OptimizerMonitor monitor(true, 3);
  std::vector<int64_t> logged_at;
  for (int i = 0; i < 7; ++i) {
    step(monitor);
    if (!logged_.values.empty()) logged_at.push_back(state_.timestamp.batch);
  }
  EXPECT_THAT(logged_at, ElementsAre(3, 6));
}

TEST_F(WithOptimizer, OptimizerMonitorLogsEveryTenthBatchUnlessAsked) {
  optimizer("sgd");
  PosixDisk disk;
  const auto monitor = make_callback(smallest_section(callback_catalog(), "optimizer_monitor"), {disk});
  std::vector<int64_t> logged_at;
  for (int i = 0; i < 21; ++i) {
    step(*monitor);
    if (!logged_.values.empty()) logged_at.push_back(state_.timestamp.batch);
  }
  EXPECT_THAT(logged_at, ElementsAre(10, 20));
}

TEST_F(WithOptimizer, OptimizerMonitorLeavesTheOptimizersNormsOutOnRequest) {
  optimizer("decoupled_adamw");
  OptimizerMonitor monitor(false, 1);
  step(monitor);
  EXPECT_THAT(logged_.values, Not(testing::Contains(testing::Key("l2_norm/moment/b"))));
}

class AdamKinds : public WithOptimizer, public testing::WithParamInterface<std::string> {};

TEST_P(AdamKinds, OptimizerMonitorLogsTheChangesOfAStep) {
  optimizer(GetParam(), 0.1);
  OptimizerMonitor monitor(true, 1);
  for (const double lr : {0.001, 0.5, 0.25}) {
    const at::Tensor before = state_.views[0].tensor.clone();
    state_.optimizer->set_lr(lr);
    step(monitor);
    const double change = (state_.views[0].tensor - before).norm().item<double>();
    EXPECT_NEAR(logged_.values.at("l2_norm/update/a.weight"), change, 1e-4 * change + 1e-6);
    EXPECT_FLOAT_EQ(logged_.values.at("l2_norm/param/a.weight"),
                    state_.views[0].tensor.norm().item<double>());
  }
  for (const auto& one : state_.optimizer->state()) {
    if (one.name == "exp_avg" && one.view->name == "b") {
      EXPECT_FLOAT_EQ(logged_.values.at("l2_norm/moment/b"), one.tensor.norm().item<double>());
    }
  }
}

// The log of each rank, of two steps.
std::vector<std::map<std::string, double>> logged_on_shares(const std::string& kind, int ranks) {
  std::vector<std::map<std::string, double>> logged(static_cast<std::size_t>(ranks));
  run_on_shares(many_parameters(at::kFloat), ranks, [&](State& state) {
    state.optimizer = make_optimizer(smallest_section(optimizer_catalog(), kind), state.views);
    OptimizerMonitor monitor(true, 1);
    Kept kept;
    for (int step = 0; step < 2; ++step) {
      std::vector<at::Tensor> gradients;
      for (const ParamView& view : state.views)
        gradients.push_back(view.grad.clone(at::MemoryFormat::Preserve));
      monitor.run_event(Event::kAfterTrainBatch, state, kept);
      state.optimizer->step(at::scalar_tensor(1.0F));
      monitor.run_event(Event::kBatchEnd, state, kept);
      for (std::size_t p = 0; p < gradients.size(); ++p) state.views[p].grad = gradients[p];
    }
    logged[static_cast<std::size_t>(state.topology.rank)] = kept.values;
  });
  return logged;
}

TEST_P(AdamKinds, OptimizerMonitorLogsTheSameForSharesOnEveryRank) {
  const auto whole = logged_on_shares(GetParam(), 1)[0];
  EXPECT_EQ(whole.size(), many_parameters(at::kFloat).size() * 4 + 1);
  for (const int ranks : {2, 3, 4, 8})
    for (const auto& of_rank : logged_on_shares(GetParam(), ranks)) EXPECT_EQ(of_rank, whole) << ranks;
}

INSTANTIATE_TEST_SUITE_P(All, AdamKinds, testing::Values("adam", "adamw", "decoupled_adamw"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
