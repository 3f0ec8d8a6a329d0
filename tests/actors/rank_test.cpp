#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "actors/local_ranks.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "job/make_job.h"
#include "runtime/error.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::string world_recipe(const std::string& more) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [16]\n[data.train]\nkind = 'synthetic'\nsamples = 100\n"
         "batch_size = 24\nshuffle = true\nshape = [12]\n[optimizer]\nkind = 'adamw'\n[checkpoint]\ninterval "
         "= '1ep'\n" +
         more;
}

std::vector<std::string> losses(const std::string& run_dir) {
  std::vector<std::string> found;
  std::istringstream lines(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("\"loss\": ");
    if (at != std::string::npos) found.push_back(line.substr(at, line.find(',', at) - at));
  }
  return found;
}

LocalRunOptions quietly(int ranks, const std::string& run_dir, uint64_t schedule_seed = 0) {
  LocalRunOptions options;
  options.ranks = ranks;
  options.run_dir = run_dir;
  options.schedule_seed = schedule_seed;
  options.quiet = true;
  return options;
}

TEST(WorldTest, AnyInterleavingGivesTheSameBits) {
  const Scratch folder;
  const Setting recipe = recipe_of(world_recipe("[train]\nmax_duration = '2ep'\n"));
  const auto one = train_in_one_process(recipe, quietly(3, folder.path("one"), 1));
  const auto two = train_in_one_process(recipe, quietly(3, folder.path("two"), 2));
  EXPECT_NE(one.delivery_digest, two.delivery_digest) << "both ran in the same order: this proves nothing";
  EXPECT_EQ(losses(folder.path("one")), losses(folder.path("two")));
  EXPECT_EQ(inspect_digest(folder.path("one")), inspect_digest(folder.path("two")));
}

// Calls a kernel that may differ between runs.
class Scatter final : public Algorithm {
 public:
  std::string name() const override { return "Scatter"; }
  bool match(Event event, const State&) const override { return event == Event::kBeforeForward; }
  void apply(Event, State&, Logger&) override {
    at::zeros({3}).put_(at::tensor({1, 1}, at::kLong), at::ones({2}));
  }
};

TEST(WorldTest, DeterministicModeRefusesKernelsThatMayDiffer) {
  MemoryWorld world;
  world.listeners = [](int) { return Engine::Options{.algorithms = {std::make_shared<Scatter>()}}; };
  const auto error = [&](const std::string& mode) {
    world.recipe = world_recipe("[train]\nmax_duration = '1ep'\n" + mode);
    return world.run("1").error;
  };
  EXPECT_THAT(error("deterministic_mode = true\n"), HasSubstr("put_ does not have a deterministic"));
  EXPECT_EQ(error("deterministic_mode = false\n"), "");
  EXPECT_EQ(error(""), "");
}

TEST(WorldTest, DeterministicModeChangesNoBits) {
  const Scratch folder;
  for (const std::string mode : {"true", "false"})
    train_in_one_process(
        recipe_of(world_recipe("[train]\nmax_duration = '2ep'\ndeterministic_mode = " + mode + "\n")),
        quietly(2, folder.path(mode)));
  EXPECT_EQ(losses(folder.path("true")), losses(folder.path("false")));
  EXPECT_EQ(inspect_digest(folder.path("true")), inspect_digest(folder.path("false")));
}

// So many packets of each other rank, and so many to each, while Supervisor and Sync are busy.
TEST(WorldTest, MailboxesHaveRoomForThePacketsOfAllRanks) {
  constexpr int kRanks = 512, kPartsOfCheckpoints = 3, kOrders = 2;
  const Scratch folder;
  std::string recipe = world_recipe("[train]\nmax_duration = '1ep'\n");
  for (const std::string samples : {"100", "24"})
    recipe.replace(recipe.find("= " + samples), samples.size() + 2, "= " + std::to_string(kRanks));
  const Job job = make_job(recipe_of(recipe), {kRanks, folder.path("run")});
  LocalRanks local(job);
  for (const int rank : {0, 1}) {
    const RankActors actors = add_rank(local.scheduler(), job, local.environments()[rank]);
    int refused = 0;
    for (int i = 0; i < (kRanks - 1) * kOrders; ++i) {
      refused += !local.scheduler().post(actors.supervisor, ControlReceived{2, "stop"});
      refused += !local.scheduler().post(actors.sync, SendControl{2, "stop"});
    }
    if (rank == 0)
      for (int i = 0; i < (kRanks - 1) * kPartsOfCheckpoints; ++i)
        refused += !local.scheduler().post(actors.supervisor, ControlReceived{2, "durable"});
    EXPECT_EQ(refused, 0) << rank;
  }
}

TEST(WorldTest, RealTimeGivesTheSameBits) {
  const Scratch folder;
  const Setting recipe = recipe_of(world_recipe("[train]\nmax_duration = '2ep'\n"));
  auto live = quietly(2, folder.path("live"));
  live.live = true;
  train_in_one_process(recipe, live);
  train_in_one_process(recipe, quietly(2, folder.path("made up")));
  EXPECT_EQ(losses(folder.path("live")), losses(folder.path("made up")));
  EXPECT_EQ(read_text(folder.path("live/metrics.jsonl")).find("\"step_ms\": 0,"), std::string::npos);
}

TEST(WorldTest, ShortLastBatchIsSeenWholeOnAnyNumberOfRanks) {
  const Scratch folder;
  const Setting recipe = recipe_of(world_recipe("[train]\nmax_duration = '1ep'\n"));  // 100 = 4 x 24 + 4
  for (const int ranks : {1, 8}) {
    const std::string run = folder.path(std::to_string(ranks));
    train_in_one_process(recipe, quietly(ranks, run));
    EXPECT_EQ(losses(run).size(), 5u);
    EXPECT_NE(inspect_text(run).find("100 samples"), std::string::npos) << inspect_text(run);
  }
}

TEST(WorldTest, ResumedRunEndsAtTheSameBits) {
  const Scratch folder;
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '4ep'\n")),
                       quietly(2, folder.path("whole")));
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '2ep'\n")),
                       quietly(2, folder.path("parts")));
  auto again = quietly(2, folder.path("parts"));
  again.resume = "auto";
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '4ep'\n")), again);
  EXPECT_EQ(losses(folder.path("whole")), losses(folder.path("parts")));
  EXPECT_EQ(inspect_digest(folder.path("whole")), inspect_digest(folder.path("parts")));
}

TEST(WorldTest, CheckpointResumesWithAnotherNumberOfRanks) {
  const Scratch folder;
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '1ep'\n")),
                       quietly(3, folder.path("run")));
  auto again = quietly(2, folder.path("run"));
  again.resume = "auto";
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '2ep'\n")), again);
  EXPECT_EQ(losses(folder.path("run")).size(), 10u);
}

TEST(WorldTest, SeedOfTheClockIsKeptOnResume) {
  const Scratch folder;
  const std::string text = world_recipe("").substr(sizeof "seed = 5");
  auto options = quietly(2, folder.path("run"));
  options.fresh_seed = 123;
  train_in_one_process(recipe_of(text + "[train]\nmax_duration = '1ep'\n"), options);
  options.fresh_seed = 456;
  options.resume = "auto";
  train_in_one_process(recipe_of(text + "[train]\nmax_duration = '2ep'\n"), options);
  EXPECT_NE(read_text(folder.path("run/recipe.toml")).find("seed = 123\n"), std::string::npos);
}

TEST(WorldTest, AnotherModelsCheckpointIsRefused) {
  const Scratch folder;
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '1ep'\n")),
                       quietly(2, folder.path("run")));
  auto again = quietly(2, folder.path("run"));
  again.resume = "auto";
  const std::string wider = world_recipe("[train]\nmax_duration = '2ep'\n");
  try {
    train_in_one_process(recipe_of(std::string(wider).replace(wider.find("[16]"), 4, "[17]")), again);
    FAIL() << "it trained on";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("0.weight' is [16, 12], the model's is [17, 12]"),
              std::string::npos)
        << error.what();
  }
}

TEST(WorldTest, MicrobatchesGiveTheSameLossesToRounding) {
  const Scratch folder;
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '1ep'\n")),
                       quietly(1, folder.path("1")));
  train_in_one_process(recipe_of(world_recipe("[train]\nmax_duration = '1ep'\ngrad_accum = 5\n")),
                       quietly(2, folder.path("10")));
  const auto one = losses(folder.path("1")), ten = losses(folder.path("10"));
  ASSERT_EQ(one.size(), ten.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(std::stod(one[i].substr(8)), std::stod(ten[i].substr(8)), 1e-5) << i;
}

}  // namespace
}  // namespace tutti
