#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string recipe_with(const std::string& more) {
  return "seed = 1\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nsamples = 32\n"
         "batch_size = 8\nshape = [3]\n[optimizer]\nkind = 'sgd'\n[checkpoint]\ninterval = '0ba'\n"
         "[train]\nmax_duration = '4ba'\n" +
         more;
}

std::string with_callback(const std::string& kind, const std::string& keys = "") {
  return recipe_with("[[callbacks]]\nkind = '" + kind + "'\n" + keys + "\n");
}

TEST(CallbacksTest, CallbacksOfTheRecipeRunAndLog) {
  const std::string key = "\"lr-SGD/group0\": ";
  EXPECT_THAT(MemoryWorld{.recipe = with_callback("lr_monitor")}.run("1").metrics, HasSubstr(key));
  EXPECT_THAT(MemoryWorld{.recipe = recipe_with("")}.run("1").metrics, Not(HasSubstr(key)));
}

TEST(CallbacksTest, TheRateOfEachGroupIsLogged) {
  const std::string groups = "[[optimizer.groups]]\nmatch = ['*.bias']\nlr = 0.25\n";
  const std::string metrics = MemoryWorld{.recipe = with_callback("lr_monitor") + groups}.run("1").metrics;
  EXPECT_THAT(metrics, HasSubstr("\"lr-SGD/group0\": 0.001"));
  EXPECT_THAT(metrics, HasSubstr("\"lr-SGD/group1\": 0.25"));
}

// Kinds with an argument of Composer's.
using Arguments = std::vector<std::pair<std::string, std::string>>;

TEST(CallbacksTest, ComposersArgumentsAreTaken) {
  const Arguments taken = {
      {"generate",
       "prompts = ['a', [1, 2]]\ninterval = '2ba'\nbatch_size = 2\nmax_new_tokens = 5\ndo_sample = true\n"
       "temperature = 0.7\ntop_k = 0\ntop_p = 0.9"},
      {"image_visualizer",
       "interval = '9ba'\nmode = 'segmentation'\nnum_images = 4\nchannels_last = true\n"
       "input_key = 'a.0'\ntarget_key = 'b'"},
      {"system_metrics_monitor", "log_all_data = true"},
      {"memory_monitor", "memory_keys = {\"allocated_bytes.all.peak\" = 'peak'}"},
  };
  for (const auto& [kind, keys] : taken) EXPECT_NO_THROW(recipe_of(with_callback(kind, keys))) << kind;
}

TEST(CallbacksTest, ArgumentsThatAreNotCarriedOverSayWhy) {
  const Arguments refused = {
      {"activation_monitor", "only_log_wandb = true"},
      {"memory_monitor", "dist_aggregate_batch_interval = 5"},
      {"memory_snapshot", "max_entries = 5"},
      {"memory_snapshot", "remote_file_name = 's3://a'"},
      {"oom_observer", "max_entries = 5"},
      {"oom_observer", "remote_file_name = 's3://a'"},
      {"export_for_inference", "save_path = 'a'\nsave_format = 'onnx'"},
      {"export_for_inference", "save_path = 'a'\nsave_object_store = 's3'"},
      {"export_for_inference", "save_path = 'a'\nsample_input = 1"},
      {"export_for_inference", "save_path = 'a'\ntransforms = []"},
      {"export_for_inference", "save_path = 'a'\ninput_names = ['x']"},
      {"export_for_inference", "save_path = 'a'\noutput_names = ['y']"},
  };
  for (const auto& [kind, keys] : refused)
    EXPECT_THAT(message_of<UserError>([&] { recipe_of(with_callback(kind, keys)); }),
                AllOf(HasSubstr("test.toml:"), HasSubstr("not carried over: ")))
        << keys;
}

TEST(CallbacksTest, CheckpointCallbacksPointToTheirSection) {
  for (const char* kind : {"checkpoint_saver", "load_checkpoint"})
    EXPECT_THAT(message_of<UserError>([&] { recipe_of(with_callback(kind, "overwrite = true")); }),
                AllOf(HasSubstr("callbacks.0.kind = \"" + std::string(kind) + "\""),
                      HasSubstr("Not a callback: [checkpoint]")));
}

TEST(CallbacksTest, IntervalsAreInAnyUnit) {
  for (const char* time : {"'0.5dur'", "'16sp'", "'9tok'", "'1m30s'", "'1iter'", "'3ba'", "2"}) {
    const std::string keys = std::string("interval = ") + time;
    for (const char* kind : {"activation_monitor", "image_visualizer", "memory_snapshot"})
      EXPECT_NO_THROW(recipe_of(with_callback(kind, keys))) << time;
    EXPECT_NO_THROW(recipe_of(recipe_with(std::string("console_log_interval = ") + time + "\n"))) << time;
    EXPECT_NO_THROW(recipe_of(recipe_with("[[loggers]]\nkind = 'console'\nlog_" + keys + "\n"))) << time;
  }
}

// Makes the third step's loss on the last rank no number.
class Poison final : public Algorithm {
 public:
  std::string name() const override { return "Poison"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kAfterLoss && state.timestamp.batch == 2 &&
           state.topology.rank + 1 == state.topology.world;
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

// Keeps the reports of memory that ran out.
class Hearer final : public Callback {
 public:
  explicit Hearer(std::vector<std::string>& heard) : heard_(heard) {}
  std::string name() const override { return "Hearer"; }
  void out_of_memory(State&, Logger&, const std::string& account) override { heard_.push_back(account); }

 private:
  std::vector<std::string>& heard_;
};

TEST(CallbacksTest, EveryRankIsWarnedOnceOfAnAbortedAttempt) {
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
