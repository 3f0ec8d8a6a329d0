#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/actors/memory_world.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

std::string recipe_with(const std::string& more) {
  return "seed = 1\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nsamples = 32\n"
         "batch_size = 8\nshape = [3]\n[optimizer]\nkind = 'sgd'\n[checkpoint]\ninterval = '0ba'\n"
         "[train]\nmax_duration = '4ba'\n" +
         more;
}

// Makes the third step's loss on the last rank no number.
class Poison final : public Algorithm {
 public:
  std::string name() const override { return "Poison"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kAfterLoss && state.timestamp.batch == 2 && state.rank + 1 == state.world;
  }
  void apply(Event, State& state, Logger&) override { state.loss = state.loss * std::nan(""); }
};

TEST(CallbacksTest, NaNMonitorEndsTheRunOfAllRanks) {
  MemoryWorld world{.recipe = recipe_with("[[callbacks]]\nkind = 'nan_monitor'\n")};
  world.listeners = [](int) { return Engine::Options{.algorithms = {std::make_shared<Poison>()}}; };
  EXPECT_THAT(world.run("1").error, HasSubstr("loss of step 3 is not a number"));
  world.recipe = recipe_with("");
  EXPECT_EQ(world.run("1").error, "");
}

// Keeps what it is told of memory that ran out.
class Hearer final : public Callback {
 public:
  explicit Hearer(std::vector<std::string>& heard) : heard_(heard) {}
  std::string name() const override { return "Hearer"; }
  void out_of_memory(State&, Logger&, const std::string& account) override { heard_.push_back(account); }

 private:
  std::vector<std::string>& heard_;
};

TEST(CallbacksTest, EveryRankIsToldOnceOfAVoidAttempt) {
  std::vector<std::string> heard[2];
  MemoryWorld world{.recipe = recipe_with("")};
  world.failures[1] = {5};
  world.listeners = [&](int rank) {
    return Engine::Options{.callbacks = {std::make_shared<Hearer>(heard[rank])}};
  };
  EXPECT_EQ(world.run("\"auto\"").error, "");
  for (const auto& of_rank : heard)
    EXPECT_THAT(of_rank, AllOf(SizeIs(1), Each(AllOf(HasSubstr("step 1: rank 1 ran out of memory"),
                                                     HasSubstr("what held it: parameters")))));
}

// Takes its time in evaluations.
class Dawdler final : public Callback {
 public:
  static constexpr double kSeconds = 0.4;

  explicit Dawdler(Timestamp& trained) : trained_(trained) {}
  std::string name() const override { return "Dawdler"; }
  void eval_start(State&, Logger&) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  }
  void fit_end(State& state, Logger&) override {
    trained_ = state.timestamp;
    EXPECT_GE(state.eval_timestamp.total_wct, kSeconds);
  }

 private:
  Timestamp& trained_;
};

TEST(CallbacksTest, TimeOfEvaluationsIsNoTimeOfTraining) {
  Timestamp trained;
  MemoryWorld world{
      .recipe = recipe_with("eval_interval = '2ba'\n[data.eval]\nkind = 'synthetic'\nsamples = 8\n"
                            "batch_size = 8\nshape = [3]\n"),
      .ranks = 1};
  world.real_time = true;
  world.listeners = [&](int) { return Engine::Options{.callbacks = {std::make_shared<Dawdler>(trained)}}; };
  EXPECT_EQ(world.run("1").error, "");
  EXPECT_EQ(trained.batch, 4);
  EXPECT_GT(trained.total_wct, 0.0);
  EXPECT_LT(trained.total_wct, Dawdler::kSeconds);
}

}  // namespace
}  // namespace tutti
