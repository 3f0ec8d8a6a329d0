#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "models/model.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr int kSteps = 12;

void ones(at::Tensor& tensor, at::Generator) { tensor.fill_(1.0); }

// One of its parameters is for samples of one kind only, another for none.
class Branching final : public Model {
 public:
  Branching()
      : trunk_(add_parameter("trunk", {6}, ones)),
        branch_(add_parameter("branch", {6}, ones)),
        idle_(add_parameter("idle", {6}, ones)) {}
  TensorTree forward(const Batch& batch) override {
    const at::Tensor x = batch["input"];
    const at::Tensor rare = x.select(1, 0).gt(1.0);
    at::Tensor y = x.matmul(trunk_.tensor);
    if (rare.any().item<bool>()) y = y + rare * x.matmul(branch_.tensor);
    return y;
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override {
    return (outputs.tensor() - 1).square().mean();
  }
  const char* kind() const override { return "Branching"; }

 private:
  Parameter& trunk_;
  Parameter& branch_;
  Parameter& idle_;
};

struct Run {
  int ranks = 1;
  int parts = 1;
  int batch = 5;
  std::string optimizer = "kind = 'adamw'\nlr = 0.05\nweight_decay = 0.1\n";
  std::string precision;
  int64_t freezes_after = -1;  // step
};

// Trains no more of one parameter.
class Freezer final : public Algorithm {
 public:
  explicit Freezer(int64_t step) : step_(step) {}
  std::string name() const override { return "Freezer"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kBatchEnd && state.timestamp.batch == step_;
  }
  void apply(Event, State& state, Logger&) override {
    for (ParamView& view : state.views)
      if (view.name == "branch") view.tensor.set_requires_grad(false);
  }

 private:
  int64_t step_;
};

std::map<std::string, at::Tensor> trained(const Run& run) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = run.ranks;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&run](Job& job) {
    job.make_model = [](const Setting&, const SampleSpec&) { return std::make_shared<Branching>(); };
    job.listeners = [step = run.freezes_after](int) {
      Engine::Options listeners;
      if (step >= 0) listeners.algorithms = {std::make_shared<Freezer>(step)};
      return listeners;
    };
  };
  train_in_one_process(
      recipe_of(
          "seed = 5\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 52\nshape = [6]\n"
          "batch_size = " +
          std::to_string(run.batch) + "\n[optimizer]\n" + run.optimizer + run.precision +
          "[train]\nmax_duration = '" + std::to_string(kSteps) +
          "ba'\ngrad_accum = " + std::to_string(run.parts) + "\n"),
      options);
  PosixDisk disk;
  return newest_checkpoint(options.run_dir).tensors;
}

int64_t steps_of(const std::map<std::string, at::Tensor>& saved, const std::string& parameter) {
  return saved.at("optimizers/" + parameter + "/step").item<int64_t>();
}

void expect_close(const std::map<std::string, at::Tensor>& got,
                  const std::map<std::string, at::Tensor>& want) {
  for (const auto& [name, tensor] : want) EXPECT_TRUE(at::allclose(got.at(name), tensor, 1e-4, 1e-5)) << name;
}

// 5 samples over 2 ranks, and over 3; at the epoch's end 2.
TEST(UnevenRanks, AnyNumberOfThemComesToTheSame) {
  const auto alone = trained({});
  for (const auto& [ranks, parts] :
       std::vector<std::pair<int, int>>{{1, 2}, {2, 1}, {2, 2}, {3, 1}, {5, 1}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks x " + std::to_string(parts));
    expect_close(trained({.ranks = ranks, .parts = parts}), alone);
  }
}

// Frozen parameters cost no message, and are as if they had no gradient.
TEST(UnevenRanks, AFrozenParameterStandsStill) {
  const auto alone = trained({.freezes_after = 5});
  EXPECT_GT(steps_of(alone, "branch"), 0);
  EXPECT_LT(steps_of(alone, "branch"), steps_of(trained({}), "branch"));
  for (const int ranks : {2, 3}) {
    const auto saved = trained({.ranks = ranks, .freezes_after = 5});
    EXPECT_EQ(steps_of(saved, "branch"), steps_of(alone, "branch")) << ranks;
    expect_close(saved, alone);
  }
}

// A weight that no sample of the batch goes through is neither decayed nor moved on by its momentum.
TEST(UnevenRanks, AParameterUsedByNoRankIsNotUpdated) {
  const std::string actors = "[precision]\nreduce_dtype = 'bf16'\n";
  for (const auto& [ranks, precision] :
       std::vector<std::pair<int, std::string>>{{1, ""}, {3, ""}, {3, actors}}) {
    SCOPED_TRACE(std::to_string(ranks) + precision);
    const auto saved = trained({.ranks = ranks, .precision = precision});
    EXPECT_TRUE(saved.at("model/idle").equal(at::ones({6})));
    EXPECT_EQ(steps_of(saved, "idle"), 0);
    EXPECT_EQ(steps_of(saved, "trunk"), kSteps);
    EXPECT_GT(steps_of(saved, "branch"), 0);
    EXPECT_LT(steps_of(saved, "branch"), kSteps);
  }
}

TEST(UnevenRanks, AParameterUsedByOneRankIsUpdatedByAll) {
  const std::string momentum =
      "kind = 'sgd'\nlr = 0.01\nmomentum = 0.9\ndampening = 0.5\nweight_decay = 0.1\n";
  expect_close(trained({.ranks = 4, .optimizer = momentum}), trained({.optimizer = momentum}));
}

}  // namespace
}  // namespace tutti
