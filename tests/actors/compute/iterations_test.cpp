#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/actors/listened_run.h"
#include "training/engine/callback.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Of 2 batches an epoch.
std::string iterations_recipe(const std::string& train) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nshape = [6]\n"
         "samples = 48\nbatch_size = 24\n[data.eval]\nkind = 'synthetic'\nshape = [6]\nsamples = 24\n"
         "batch_size = 24\n[optimizer]\nkind = 'sgd'\n[checkpoint]\ninterval = '1ba'\n[train]\n" +
         train;
}

// "batch 4: iteration_end 1.0": what happens to iterations, at which iteration and epoch of it.
class IterationEvents final : public Callback {
 public:
  IterationEvents(std::vector<std::string>& seen, int64_t fails_after)
      : seen_(seen), fails_after_(fails_after) {}
  std::string name() const override { return "IterationEvents"; }
  void run_event(Event event, State& state, Logger&) override {
    const Timestamp& time = state.timestamp;
    const std::string name = tutti::name(event);
    if (name.find("iteration") != std::string::npos || event == Event::kEpochEnd ||
        event == Event::kEvalBeforeAll)
      seen_.push_back("batch " + std::to_string(time.batch) + ": " + name + " " +
                      std::to_string(time.iteration) + "." + std::to_string(time.epoch_in_iteration));
    if (event == Event::kBatchEnd && time.batch == fails_after_) throw OperatingError("the lights go out");
  }

 private:
  std::vector<std::string>& seen_;
  int64_t fails_after_;
};

std::vector<std::string> iteration_events(const std::string& train, const std::string& run_dir,
                                          int64_t fails_after = -1) {
  std::vector<std::string> seen;
  run_listened(iterations_recipe(train), run_dir, std::make_shared<IterationEvents>(seen, fails_after),
               /*fails=*/fails_after >= 0);
  return seen;
}

constexpr const char* kTwoOfThree =
    "max_duration = '2iter'\niteration_length = '3ep'\neval_interval = '1iter'\n";

TEST(IterationsTest, EndAfterTheirEpochs) {
  const Scratch folder;
  EXPECT_THAT(iteration_events(kTwoOfThree, folder.path("run")),
              ElementsAre("batch 0: iteration_start 0.0", "batch 2: epoch_end 0.1", "batch 4: epoch_end 0.2",
                          "batch 6: epoch_end 0.3", "batch 6: eval_before_all 0.3",
                          "batch 6: iteration_end 1.0", "batch 6: iteration_checkpoint 1.0",
                          "batch 6: iteration_start 1.0", "batch 8: epoch_end 1.1", "batch 10: epoch_end 1.2",
                          "batch 12: epoch_end 1.3", "batch 12: eval_before_all 1.3",
                          "batch 12: iteration_end 2.0", "batch 12: iteration_checkpoint 2.0"));
}

TEST(IterationsTest, HoldTheWholeTrainingWithoutALength) {
  const Scratch folder;
  EXPECT_THAT(
      iteration_events("max_duration = '2ep'\neval_interval = '0iter'\n", folder.path("run")),
      ElementsAre("batch 0: iteration_start 0.0", "batch 2: epoch_end 0.1", "batch 4: epoch_end 0.2"));
}

TEST(IterationsTest, ContinueWhereARunIsResumed) {
  const Scratch folder;
  const auto whole = iteration_events(kTwoOfThree, folder.path("whole"));
  for (const int64_t fails_after : {1, 5, 6, 7, 9}) {
    const std::string run = folder.path("parts-" + std::to_string(fails_after));
    iteration_events(kTwoOfThree, run, fails_after);
    const auto rest = iteration_events(kTwoOfThree, run);
    ASSERT_LE(rest.size(), whole.size());
    ASSERT_GE(rest.size(), 5u);
    EXPECT_THAT(rest, ElementsAreArray(whole.end() - std::ssize(rest), whole.end())) << fails_after;
  }
}

TEST(IterationsTest, ADurationInIterationsNeedsTheirLength) {
  const auto complaint = HasSubstr("[train] iteration_length does not say how long one is");
  const Scratch folder;
  EXPECT_THAT([&] { iteration_events("max_duration = '2iter'\n", folder.path("run")); },
              ThrowsMessage<UserError>(complaint));
}

TEST(IterationsTest, IntervalsOfThoseWithoutALengthAreOverAtTheEndAlone) {
  const Scratch folder;
  EXPECT_THAT(iteration_events("max_duration = '2ep'\neval_interval = '1iter'\n[[callbacks]]\n"
                               "kind = 'export_for_inference'\nsave_path = 'ep{epoch}'\ninterval = '1iter'\n",
                               folder.path("run")),
              ElementsAre("batch 0: iteration_start 0.0", "batch 2: epoch_end 0.1", "batch 4: epoch_end 0.2",
                          "batch 4: eval_before_all 0.2"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/ep2")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/ep1")));
}

TEST(IterationsTest, CheckpointsOfThoseWithoutALengthAreAtTheEndAlone) {
  const auto checkpoints = [](const char* interval) {
    const Scratch folder;
    std::string recipe = iterations_recipe("max_duration = '2ep'\n");
    recipe.replace(recipe.find("1ba"), 3, interval);
    std::vector<std::string> seen;
    run_listened(recipe, folder.path("run"), std::make_shared<IterationEvents>(seen, -1), /*fails=*/false);
    return std::distance(std::filesystem::directory_iterator(folder.path("run/checkpoints")), {});
  };
  EXPECT_EQ(checkpoints("1iter"), checkpoints("9ep"));
  EXPECT_LT(checkpoints("1iter"), checkpoints("1ep"));
}

}  // namespace
}  // namespace tutti
