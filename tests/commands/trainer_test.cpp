#include "commands/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "io/checkpoint/checkpoint.h"
#include "runtime/disk.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTrainerRecipe = R"(
seed = 5
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
samples = 60
batch_size = 12
shape = [6]
[data.eval]
kind = "synthetic"
samples = 7
shape = [6]
[optimizer]
kind = "adam"
lr = 0.01
[train]
max_duration = "2ep"
progress_bar = false
[checkpoint]
interval = "1dur"
)";

class TrainerTest : public testing::Test {
 protected:
  Trainer::Options options(const std::string& name) const {
    return {.recipe = kTrainerRecipe, .run_dir = folder_.path(name)};
  }
  WholeCheckpoint newest(const std::string& name) const { return newest_checkpoint(folder_.path(name)); }

  Scratch folder_;
};

TEST_F(TrainerTest, ASecondFitContinuesWhereTheFirstEnded) {
  Trainer twice(options("twice"));
  ASSERT_EQ(twice.fit(), 0);
  ASSERT_EQ(twice.fit({train_on("1ep")}), 0);
  ASSERT_EQ(twice.fit({train_on("7ba")}), 0);
  Trainer once(options("once"));
  ASSERT_EQ(once.fit({train_on("1ep"), train_on("7ba")}), 0);
  EXPECT_THAT(newest("twice").folder, HasSubstr("ba22"));
  EXPECT_EQ(digest_of(newest("twice").tensors), digest_of(newest("once").tensors));
  EXPECT_THAT(read_text(folder_.path("once/result.json")),
              HasSubstr("\"reason\": \"max_duration of 22ba is reached (2ep at the start)\""));
}

TEST_F(TrainerTest, ASavedCheckpointIsThatOfTheLastFit) {
  Trainer trainer(options("run"));
  EXPECT_THROW(trainer.save_checkpoint(folder_.path("early")), UserError);
  ASSERT_EQ(trainer.fit(), 0);
  trainer.save_checkpoint(folder_.path("saved/two-epochs"));
  ASSERT_EQ(trainer.fit({train_on("1ep")}), 0);
  const WholeCheckpoint saved = newest("saved/two-epochs");
  EXPECT_EQ(saved.folder, folder_.path("saved/two-epochs"));
  EXPECT_NE(digest_of(saved.tensors), digest_of(newest("run").tensors));
  EXPECT_THROW(trainer.save_checkpoint(folder_.path("saved/two-epochs")), OperatingError);

  Trainer::Options resumed = options("resumed");
  resumed.resume = saved.folder;
  resumed.overrides = {"train.max_duration=3ep"};
  ASSERT_EQ(Trainer(std::move(resumed)).fit(), 0);
  EXPECT_EQ(digest_of(newest("resumed").tensors), digest_of(newest("run").tensors));
}

TEST_F(TrainerTest, NoTaskOfAnEarlierFitIsDoneAgain) {
  int outputs = 0;
  Trainer trainer(options("run"));
  ASSERT_EQ(trainer.fit(), 0);
  ASSERT_EQ(trainer.fit({predict_on("eval", [&](const TensorTree&) { ++outputs; })}), 0);
  const int once = outputs;
  EXPECT_GT(once, 0);
  ASSERT_EQ(trainer.fit({train_on("1ba")}), 0);
  EXPECT_EQ(outputs, once);
  EXPECT_THAT(newest("run").folder, HasSubstr("ba11"));
}

struct Stops final : Callback {
  std::string name() const override { return "Stops"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch == 3) kill(getpid(), SIGTERM);
  }
};

TEST_F(TrainerTest, AfterAStopNothingMoreIsTrained) {
  Trainer::Options stopping = options("run");
  stopping.overrides = {"train.max_duration=100000ep"};
  stopping.listeners = [](int) { return Engine::Options{.callbacks = {std::make_shared<Stops>()}}; };
  Trainer trainer(std::move(stopping));
  ASSERT_EQ(trainer.fit(), 0);
  const std::string stopped_at = newest("run").folder;
  ASSERT_EQ(trainer.fit({train_on("1ep")}), 0);
  EXPECT_EQ(newest("run").folder, stopped_at);
}

struct Asks final : Callback {
  std::string name() const override { return "Asks"; }
  void batch_end(State& state, Logger&) override {
    state.checkpoint_requested = state.timestamp.batch % 7 == 3;
  }
};

TEST_F(TrainerTest, ACallbackAsksForACheckpointOfAStep) {
  Trainer::Options asking = options("run");
  asking.listeners = [](int) { return Engine::Options{.callbacks = {std::make_shared<Asks>()}}; };
  ASSERT_EQ(Trainer(std::move(asking)).fit(), 0);
  EXPECT_THAT(published_checkpoints(PosixDisk(), folder_.path("run/checkpoints")),
              ElementsAre("ep0-ba3", "ep2-ba10"));
}

}  // namespace
}  // namespace tutti
