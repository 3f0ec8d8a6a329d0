#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tests/actors/everything.h"

namespace tutti {
namespace {

constexpr int kRanks = 3;

// Changes what is trained at each event at which it may, as hangs on how often it has. What it has of the
// weights at the beginning of an evaluation it puts back at its end.
class Acting final : public Algorithm {
 public:
  explicit Acting(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  bool match(Event event, const State&) const override {
    return event >= Event::kIterationStart && event <= Event::kEvalAfterAll && !in_attempt(event);
  }
  void apply(Event event, State& state, Logger&) override {
    const at::NoGradGuard no_grad;
    if (event == Event::kAfterTrainBatch)
      for (auto& view : state.views) view.grad.mul_(1.5);
    if (event == Event::kEvalStart) scale(state, 2);
    if (event == Event::kEvalEnd) scale(state, 0.5);
    if (event == Event::kAfterTrainBatch || event >= Event::kEvalBeforeAll) return;
    acted_.add_(1);
    scale(state, 1 + 1e-3 * acted_[0].item<double>());
  }
  NamedTensors state_tensors() override { return {{"acted", acted_}}; }

 private:
  static bool in_attempt(Event event) {
    const bool before_the_verdict = event >= Event::kAfterDataloader && event <= Event::kAfterBackward;
    return before_the_verdict || (event >= Event::kEvalBatchStart && event <= Event::kEvalBatchEnd);
  }
  static void scale(State& state, double by) {
    for (auto& view : state.views) view.tensor.detach().mul_(by);
  }

  std::string name_;
  at::Tensor acted_ = at::zeros({1});
};

void add_acting(Job& job) {
  job.listeners = [](int) {
    Engine::Options listeners;
    listeners.algorithms = {std::make_shared<Acting>("First"), std::make_shared<Acting>("Second")};
    return listeners;
  };
}

Setting recipe_of(const std::string& text) { return resolve_recipe(parse_recipe(text, "acting.toml")); }

constexpr const char* kTrains = R"(
seed = 3
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
samples = 48
batch_size = 12
shape = [6]
[data.eval]
kind = "synthetic"
samples = 12
shape = [6]
[optimizer]
kind = "adamw"
[checkpoint]
interval = "3ba"
[train]
max_duration = "3ep"
iteration_length = "2ep"
eval_interval = "3ba"
grad_accum = "auto"
hang_timeout = "10sec"
)";

// Of a shortage of listeners, whatever else goes wrong. `more` of a plan.
void expect_all_well(const Setting& recipe, void (*add)(Job&), const std::string& more, uint64_t seeds) {
  const std::string plan = "starts = 4\n[[fault]]\nkind = 'out_of_memory'\nphase = 'algorithm'\n" + more;
  SimSeams seams;
  seams.job = [add](Job& job, int) { add(job); };
  const FaultPlan faults = make_fault_plan(parse_recipe(plan, "plan.toml"), kRanks);
  const Simulation simulation(recipe, kRanks, faults, seams, seams);
  FaultCounts happened;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SeedResult result = seed % 10 == 0 ? simulation.run_twice(seed) : simulation.run(seed);
    EXPECT_THAT(result.findings, testing::IsEmpty()) << "seed " << seed << "\n"
                                                     << testing::PrintToString(result.story);
    for (const auto& [name, count] : result.faults) happened[name] += count;
  }
  for (const FaultRule& rule : faults.rules) EXPECT_GT(happened[rule.label], 0) << rule.label;
}

constexpr const char* kElse = R"(
[[fault]]
kind = "out_of_memory"
phase = "callback"
probability = 0.3
[[fault]]
kind = "out_of_memory"
probability = 0.3
[[fault]]
kind = "death"
probability = 0.2
[[fault]]
kind = "power_loss"
probability = 0.2
[[fault]]
kind = "sigterm"
probability = 0.2
[[fault]]
kind = "disk_full"
probability = 0.1
)";

TEST(ScarceListenersTest, WhatAlgorithmsChangeIsWhereItWas) {
  expect_all_well(recipe_of(kTrains), add_acting, "", 60);
}

TEST(ScarceListenersTest, WhateverElseGoesWrong) {
  expect_all_well(recipe_of(kTrains), add_acting, kElse, 60);
}

TEST(ScarceListenersTest, WithAllThatCanBeHad) {
  const std::string model = "[model]\nkind = \"mlp\"\nhidden = [8]\n";
  expect_all_well(
      recipe_of(with_samples(kEverything, "shape = [6]\n") + model), [](Job&) {}, kElse, 30);
}

}  // namespace
}  // namespace tutti
