#include <gtest/gtest.h>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "tests/actors/listened_run.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "training/engine/callback.h"

namespace tutti {
namespace {

// Two batches an epoch.
std::string duration_recipe(const std::string& max_duration) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nshape = [6]\n"
         "samples = 48\nbatch_size = 24\n[optimizer]\nkind = 'sgd'\n[scheduler]\nkind = 'linear'\n"
         "[checkpoint]\ninterval = '1ba'\n[train]\nmax_duration = '" +
         max_duration + "'\n";
}

struct Change {
  Event at;
  int64_t batch;
  std::string to;  // "" = the training ends here
};

// Changes the training's length, and may fail at the end of a batch.
class Changer final : public Callback {
 public:
  Changer(Change change, int64_t fails_after, int64_t& trained)
      : change_(std::move(change)), fails_after_(fails_after), trained_(trained) {}
  std::string name() const override { return "Changer"; }
  void run_event(Event event, State& state, Logger&) override {
    if (event == Event::kBatchStart) ++trained_;
    const int64_t batch = state.timestamp.batch;
    if (event == change_.at && (batch == change_.batch || event == Event::kFitStart)) {
      if (change_.to.empty())
        state.stop_training();
      else
        state.max_duration = Time::parse(change_.to);
    }
    if (event == Event::kBatchEnd && batch == fails_after_) throw OperatingError("the lights go out");
  }

 private:
  Change change_;
  int64_t fails_after_;
  int64_t& trained_;
};

// The number of trained batches.
int64_t batches_of(const std::string& run_dir, const Change& change, const std::string& max_duration = "6ep",
                   int64_t fails_after = -1) {
  int64_t trained = 0;
  run_listened(duration_recipe(max_duration), run_dir,
               std::make_shared<Changer>(change, fails_after, trained),
               /*fails=*/fails_after >= 0);
  return trained;
}

// 16 tokens a batch.
TEST(DurationTest, TokensOfAllRanksAreCounted) {
  for (const int ranks : {1, 2}) {
    const Scratch folder;
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = folder.path("run");
    options.quiet = true;
    train_in_one_process(
        recipe_of(
            "seed = 1\n[model]\nkind = 'gpt'\nvocab_size = 8\nn_positions = 4\nn_embd = 8\nn_layer = 1\n"
            "n_head = 1\n[data.train]\nkind = 'synthetic'\ntargets = 'sequence'\nshape = [4]\n"
            "vocab = 8\nsamples = 24\nbatch_size = 4\n[optimizer]\nkind = 'adamw'\n[train]\n"
            "max_duration = '40tok'\n"),
        options);
    const WholeCheckpoint last = newest_checkpoint(options.run_dir);
    const RunState state = RunState::from_json(last.state);
    EXPECT_EQ(state.time.token, 48) << ranks;
    EXPECT_EQ(state.time.batch, 3) << ranks;
  }
}

TEST(DurationTest, ATrainingThatWasEndedIsOver) {
  const Scratch folder;
  const Change end{Event::kEpochEnd, 4, ""};
  EXPECT_EQ(batches_of(folder.path("run"), end), 4);
  EXPECT_EQ(batches_of(folder.path("run"), end), 0);
}

TEST(DurationTest, AChangedDurationOutlivesAResume) {
  const Scratch folder;
  const Change shorten{Event::kEpochEnd, 2, "4ep"};
  EXPECT_EQ(batches_of(folder.path("whole"), shorten), 8);
  EXPECT_EQ(batches_of(folder.path("parts"), shorten, "6ep", /*fails_after=*/5), 5);
  EXPECT_GE(batches_of(folder.path("parts"), shorten), 3);
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
}

// The change at FIT_START is made in every attempt.
TEST(DurationTest, AChangeAtFitStartIsMadeOnce) {
  const Scratch folder;
  const Change shorten{Event::kFitStart, 0, "3ep"};
  EXPECT_EQ(batches_of(folder.path("whole"), shorten), 6);
  batches_of(folder.path("parts"), shorten, "6ep", /*fails_after=*/3);
  batches_of(folder.path("parts"), shorten);
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
}

TEST(DurationTest, ANewDurationInTheRecipeReplacesAChangedOne) {
  const Scratch folder;
  batches_of(folder.path("run"), {Event::kEpochEnd, 4, ""});
  EXPECT_EQ(batches_of(folder.path("run"), {Event::kEpochEnd, -1, ""}, "5ep"), 6);
}

TEST(DurationTest, ATrainingOfNoStepsWritesTheInitialCheckpoint) {
  const Scratch folder;
  EXPECT_EQ(batches_of(folder.path("run"), {Event::kEpochEnd, -1, ""}, "0ba"), 0);
  const WholeCheckpoint initial = newest_checkpoint(folder.path("run"));
  EXPECT_EQ(RunState::from_json(initial.state).time.batch, 0);
  EXPECT_FALSE(initial.tensors.empty());
}

}  // namespace
}  // namespace tutti
