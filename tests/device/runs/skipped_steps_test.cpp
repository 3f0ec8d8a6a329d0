// Steps that are skipped on the test device, whose update is launched before the host knows.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "tests/actors/sleeping_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "training/engine/engine.h"

namespace tutti {
namespace {

// Multiplies the loss of one step on one rank.
class Spoils final : public Algorithm {
 public:
  Spoils(int64_t step, double factor) : step_(step), factor_(factor) {}
  std::string name() const override { return "Spoils"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kAfterLoss && state.timestamp.batch + 1 == step_;
  }
  void apply(Event, State& state, Logger&) override { state.loss = state.loss * factor_; }

 private:
  int64_t step_;
  double factor_;
};

struct Skip {
  std::string optimizer;
  int ranks = 1;
  int64_t step = 1;
  double factor = std::numeric_limits<double>::quiet_NaN();
  std::string precision = {};
  std::string strategy = "none";
};

constexpr int kSteps = 4;

// All that the last checkpoint of a training saves.
struct Saved {
  ShardedRun run;
  WholeCheckpoint checkpoint;
};

Saved train(const Skip& skip, Where where) {
  const Scratch folder;
  DeviceRun run{
      replaced(kSmallMlp, "kind = 'adamw'\nlr = 0.01\n", skip.optimizer) + steps(kSteps) + skip.precision,
      {skip.strategy, skip.ranks}};
  run.prepare = [&](Job& job) {
    job.listeners = [&](int rank) {
      Engine::Options options;
      const bool spoils = rank == skip.ranks - 1;
      options.algorithms = {std::make_shared<Spoils>(spoils ? skip.step : 0, skip.factor)};
      return options;
    };
  };
  ShardedRun done = run.run(where, folder.path("run"));
  return {std::move(done), newest_checkpoint(folder.path("run"))};
}

GradScalerState scaler_of(const Saved& saved) {
  return RunState::from_json(saved.checkpoint.state).grad_scaler;
}

// The step is skipped, and nothing that the host or the device keeps differs from the CPU's.
void expect_no_drift(const Skip& skip) {
  const Saved cpu = train(skip, Where::kCpu), device = train(skip, Where::kLate);
  const auto& expected = cpu.checkpoint.tensors;
  EXPECT_EQ(expected.at("optimizers/0.weight/step").item<int64_t>(), kSteps - 1);
  EXPECT_EQ(device.run.metrics, cpu.run.metrics);
  EXPECT_EQ(scaler_of(device), scaler_of(cpu));
  ASSERT_EQ(device.checkpoint.tensors.size(), expected.size());
  for (const auto& [name, tensor] : device.checkpoint.tensors)
    EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
}

const std::vector<std::string>& optimizers() {
  static const std::vector<std::string> all{
      "kind = 'sgd'\nlr = 0.1\nmomentum = 0.9\ndampening = 0.3\nweight_decay = 0.01\n",
      "kind = 'decoupled_sgdw'\nlr = 0.1\nmomentum = 0.9\nweight_decay = 0.01\n",
      "kind = 'adam'\nlr = 0.01\namsgrad = true\nweight_decay = 0.01\n",
      "kind = 'adamw'\nlr = 0.01\nweight_decay = 0.01\n",
      "kind = 'decoupled_adamw'\nlr = 0.01\nweight_decay = 0.01\n",
      "kind = 'decoupled_adamw'\nlr = 0.0\nweight_decay = 0.01\n",
  };
  return all;
}

class SkippedSteps : public DeviceRunTest {};

TEST_F(SkippedSteps, LeaveTheOptimizerAsItWas) {
  for (const std::string& optimizer : optimizers())
    for (const int64_t step : {1, 2, 3, 4}) {
      const bool by_day = step == 2 || (step == 1 && optimizer == optimizers()[0]);
      if (!by_day && !is_nightly()) continue;
      SCOPED_TRACE(optimizer + "step " + std::to_string(step));
      expect_no_drift({.optimizer = optimizer, .step = step});
    }
}

TEST_F(SkippedSteps, OfOneRankAreSkippedByAll) {
  constexpr double kOverflows = 1e38;  // in the gradients alone
  for (const double factor : {std::numeric_limits<double>::quiet_NaN(), kOverflows})
    for (const std::string strategy : {"none", "full", "optimizer", "gradients"}) {
      if (strategy != "none" && strategy != "full" && !is_nightly()) continue;
      SCOPED_TRACE(strategy + " " + std::to_string(factor));
      expect_no_drift(
          {.optimizer = optimizers()[1], .ranks = 2, .step = 2, .factor = factor, .strategy = strategy});
    }
}

TEST_F(SkippedSteps, ShrinkTheLossScaleAsOnTheCpu) {
  for (const int ranks : {1, 2})
    expect_no_drift({.optimizer = optimizers()[3],
                     .ranks = ranks,
                     .step = ranks,
                     .factor = 1e30,
                     .precision = "precision = 'amp_fp16'\n"});
}

}  // namespace
}  // namespace tutti
