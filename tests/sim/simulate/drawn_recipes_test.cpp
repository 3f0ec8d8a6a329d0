#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "commands/local_train.h"
#include "job/recipe_catalogs.h"
#include "recipe/overlay.h"
#include "recipe/recipe_space.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "sim/replay/replay.h"
#include "sim/simulate/drawn_seed.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr int kMostTries = 50;
constexpr int kMostRanks = 6;
constexpr int64_t kStopsAt = 3;

// Drawn recipes as users run them, with files and real time: stopped, replayed, and resumed on another number
// of ranks.
class DrawnRecipesTest : public testing::Test {
 protected:
  struct Accepted {
    Setting recipe;
    int ranks;
  };

  LocalRunResult train(const Setting& recipe, int ranks, const std::string& resume) const {
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = run_dir();
    options.resume = resume;
    options.live = options.quiet = true;
    return train_in_one_process(recipe, options);
  }

  // Trains the first steps with the first drawn recipe that a run takes.
  Accepted train_first_steps(const RecipeSpace& space, uint64_t seed) {
    for (int number = 0; number < kMostTries; ++number) {
      scratch_.emplace();
      const DrawnRecipe drawn = space.draw(seed, number, 2);
      try {
        const Setting recipe = with(resolve_recipe(drawn.recipe), "[train]\nhang_timeout = '600sec'");
        EXPECT_EQ(train(with(recipe, "[train]\nstop_at = '3ba'\n[journal]\nlevel = 'full'"), drawn.ranks, "")
                      .exit_code,
                  0);
        return {recipe, drawn.ranks};
      } catch (const UserError&) {
      }
    }
    ADD_FAILURE() << "no recipe of seed " << seed << " is taken";
    return {};
  }

  static Setting with(Setting recipe, const std::string& more) {
    overlay(recipe, parse_recipe(more, "more.toml"));
    return recipe;
  }

  std::string run_dir() const { return scratch_->path("run"); }

  std::vector<int64_t> logged_steps() const {
    std::istringstream lines(PosixDisk().read_text(run_dir() + "/metrics.jsonl", 1 << 24));
    std::vector<int64_t> steps;
    for (std::string line; std::getline(lines, line);) {
      const int64_t step = nlohmann::json::parse(line).at("step");
      if (steps.empty() || steps.back() != step) steps.push_back(step);
    }
    return steps;
  }

  std::optional<Scratch> scratch_;
};

TEST_F(DrawnRecipesTest, StopReplayAndResumeOnOtherRanks) {
  const RecipeSpace space(read_recipe(TUTTI_SOURCE_DIR "/examples/faults/drawn.toml"));
  int resumed = 0;
  const uint64_t seeds = is_nightly() ? 500 : 6;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Accepted accepted = train_first_steps(space, seed);
    if (HasFailure()) return;
    const ReplayResult replayed = replay({.run_dir = run_dir()});
    EXPECT_TRUE(replayed.same) << replayed.text;
    const bool per_rank = accepted.recipe.at("data").at("train").has("device_batch_size");
    const int others =
        per_rank ? accepted.ranks : 1 + (accepted.ranks + static_cast<int>(seed % 4)) % kMostRanks;
    try {
      EXPECT_EQ(train(accepted.recipe, others, "auto").exit_code, 0);
    } catch (const UserError& error) {  // a strategy for other numbers of ranks, for example
      std::printf("  seed %d on %d ranks: %.200s\n", static_cast<int>(seed), others,
                  error.headline().c_str());
      continue;
    }
    ++resumed;
    const std::vector<int64_t> steps = logged_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int64_t>(i) + 1);
    EXPECT_GT(steps.size(), kStopsAt);
  }
  EXPECT_GT(resumed, static_cast<int>(seeds) * 9 / 10);
}

// So that a failed seed's recipe can be drawn again.
TEST(DrawnSeedTest, RefusedDrawsAreCountedThoughTheRunWithoutFaultsFails) {
  const RecipeSpace space(parse_recipe(
      "[data.train]\nkind = 'synthetic'\nbatch_size = 4\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\n"
      "max_duration = '1ba'\n[[draw]]\noptions = [{ model.kind = 'none' }, { model.kind = 'mlp' }]\n",
      "space.toml"));
  uint64_t seed = 1;
  while (space.draw(seed, 0, 2).recipe.at("model").at("kind").text() != "none") ++seed;
  DrawnSeedOptions options;
  options.reference.job = [](Job&, int) { throw std::runtime_error("planted"); };
  const SeedResult result = simulate_drawn(space, options, seed);
  ASSERT_THAT(result.findings, testing::ElementsAre("the run without faults: planted"));
  EXPECT_EQ(failing_case(space, result, 2).recipe.at("model").at("kind").text(), "mlp");
}

}  // namespace
}  // namespace tutti
