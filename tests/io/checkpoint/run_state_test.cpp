#include "io/checkpoint/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/checkpoint/saved_state.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// As written before checkpoints had the whole time before the last step.
nlohmann::json earlier() {
  return nlohmann::json::parse(R"({
    "run_name": "digits", "seed": 7, "world": 4, "step": 11, "epoch": 2, "batch_in_epoch": 3, "sample": 88,
    "token": 880, "sample_in_epoch": 24, "token_in_epoch": 240, "iteration": 1, "epoch_in_iteration": 5,
    "token_in_iteration": 6, "global_batch": 8, "data_digest": 18446744073709551615, "seconds": 1.5,
    "iteration_seconds": 1.25, "epoch_seconds": 0.5, "lagging_rate": 0.75, "next_lr": 0.125,
    "max_duration": "12ba", "weights_only": false, "saved_without": ["metrics"], "recipe": "[model]\n",
    "last_step": {"loss": 0.5, "flops": 9.0, "lr": 0.1, "iteration": 1, "epoch": 2, "sample": 80,
                  "token": 800, "seconds": 1.375},
    "rest": {"at": "epoch_end", "labels": ["eval"]},
    "tasks": {"done": 1, "after": "10ba", "until": "12ba"},
    "accumulation": {"count": 2, "since": 4.0, "unit": "ba", "patience": 8, "trying": true},
    "grad_scaler": {"scale": 1024.0, "growth_tracker": 3, "usual_weight": 0.25},
    "plateau": {"multiplier": 0.25, "best": 3.0, "has_best": true, "bad": 2, "cooldown": 1},
    "best": {"measured": true, "value": 2.0, "best": [1.0, 2.0]},
    "listeners": {"callbacks/EarlyStopper": "{}"}, "metrics": {"eval/LossMetric": 2.0},
    "required_algorithms": [{"name": "BlurPool", "settings": "[[algorithms]]\n"}]
  })");
}

TEST(RunStateTest, OfEarlierCheckpointsIsRead) {
  const RunState state = RunState::from_json(earlier().dump());
  EXPECT_EQ(state.time, (Timestamp{.iteration = 1,
                                   .epoch = 2,
                                   .batch = 11,
                                   .sample = 88,
                                   .token = 880,
                                   .epoch_in_iteration = 5,
                                   .token_in_iteration = 6,
                                   .batch_in_epoch = 3,
                                   .sample_in_epoch = 24,
                                   .token_in_epoch = 240,
                                   .total_wct = 1.5,
                                   .iteration_wct = 1.25,
                                   .epoch_wct = 0.5}));
  const Timestamp before{
      .iteration = 1, .epoch = 2, .batch = 10, .sample = 80, .token = 800, .total_wct = 1.375};
  EXPECT_EQ(state.last_step, (LastStep{.loss = 0.5, .flops = 9, .lr = 0.1, .before = before}));
  EXPECT_EQ(state.rest, (ResumePoint{ResumePoint::Place::kAtEpochEnd, {"eval"}}));
  EXPECT_EQ(state.plateau, (PlateauState{0.25, 3, true, 2, 1}));
}

TEST(RunStateTest, KeepsTheKeysOfEarlierCheckpoints) {
  const std::string text = RunState::from_json(earlier().dump()).to_json();
  nlohmann::json written = nlohmann::json::parse(text);
  EXPECT_EQ(RunState::from_json(text).to_json(), text);
  written.erase("batch_seconds");
  const nlohmann::json before = written["last_step"]["before"];
  for (const char* total : {"iteration", "epoch", "sample", "token", "seconds"})
    written["last_step"][total] = before[total];
  written["last_step"].erase("before");
  EXPECT_EQ(written, earlier());
}

TEST(RunStateTest, OfAnOlderCheckpointHasTheTimeAfterItsLastStepForThatBefore) {
  nlohmann::json older = earlier();
  older.erase("last_step");
  const RunState state = RunState::from_json(older.dump());
  Timestamp before = state.time;
  before.batch = 10;
  EXPECT_EQ(state.last_step, LastStep{.before = before});
}

TEST(RunStateTest, OfTheOldestCheckpointsHasDefaults) {
  nlohmann::json oldest = earlier();
  for (const char* key :
       {"iteration", "epoch_in_iteration", "token_in_iteration", "iteration_seconds", "epoch_seconds",
        "lagging_rate", "next_lr", "max_duration", "weights_only", "saved_without", "last_step", "tasks",
        "accumulation", "grad_scaler", "plateau", "best", "listeners", "metrics", "required_algorithms"})
    oldest.erase(key);
  oldest["evaluation_due"] = oldest["rest"];
  oldest.erase("rest");
  const RunState state = RunState::from_json(oldest.dump()), fresh;
  EXPECT_EQ(state.time.epoch_in_iteration, 2);
  EXPECT_EQ(state.time.token_in_iteration, 880);
  EXPECT_EQ(state.rest, (ResumePoint{ResumePoint::Place::kAtEpochEnd, {"eval"}}));
  EXPECT_EQ(state.tasks, fresh.tasks);
  EXPECT_EQ(state.accumulation, fresh.accumulation);
  EXPECT_EQ(state.plateau, fresh.plateau);
  EXPECT_EQ(state.lagging_rate, 1);
  EXPECT_EQ(state.next_lr, -1);
  EXPECT_TRUE(state.listeners.empty() && state.metrics.empty() && state.required_algorithms.empty());
}

TEST(RunStateTest, WithoutAStepOrOfAnotherKindIsRefused) {
  nlohmann::json torn = earlier();
  torn["seed"] = "seven";
  for (const std::string& text : {std::string("{}"), std::string("[]"), std::string("{"), torn.dump()})
    EXPECT_THAT([&] { RunState::from_json(text); },
                ThrowsMessage<OperatingError>(HasSubstr("the checkpoint's state cannot be read")))
        << text;
}

TEST(RunStateTest, OfACheckpointIsRefusedWithItsFolder) {
  nlohmann::json torn = earlier();
  torn["seed"] = "seven";
  Checkpoint checkpoint{"run/checkpoints/ep1-ba4", {}};
  checkpoint.manifest.state = torn.dump();
  EXPECT_THAT([&] { state_of(checkpoint); },
              ThrowsMessage<OperatingError>(
                  StartsWith("run/checkpoints/ep1-ba4: the checkpoint's state cannot be read: ")));
  checkpoint.manifest.state = earlier().dump();
  EXPECT_EQ(state_of(checkpoint).seed, RunState::from_json(earlier().dump()).seed);
  EXPECT_THAT([&] { use_state(checkpoint.folder, [] { throw UserError("'due' is no number"); }); },
              ThrowsMessage<RunError>("run/checkpoints/ep1-ba4: the checkpoint's state: 'due' is no number"));
  EXPECT_THAT([&] { use_state(checkpoint.folder, [] {
                      throw UserError({"r.toml", 3}, "no");
                    }); },
              ThrowsMessage<RunError>("r.toml:3: no"));
}

}  // namespace
}  // namespace tutti
