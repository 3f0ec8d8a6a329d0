#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "commands/inspect.h"
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

// A drawn recipe in grains: without the keys that grains contradict, on ranks and under a strategy of one's
// own.
class ElasticDraw {
 public:
  explicit ElasticDraw(const Setting& drawn) : recipe_(resolve_recipe(drawn)) {
    unset("train", "grad_accum");
    unset("train", "device_train_microbatch_size");
    unset("precision", "reduce_dtype");
    unset("sharding", "shard_size");
    Setting& data = *recipe_.find("data");
    for (Setting* section : {data.find("train"), data.find("eval")}) {
      if (!section || !section->is_table() || !section->has("device_batch_size")) continue;
      section->find("device_batch_size")->value = std::monostate();
      overlay(*section, parse_recipe("batch_size = 6", "more.toml"));
    }
    overlay(recipe_, parse_recipe("[reproducibility]\nmode = 'elastic'\ngrains = 4\n[sharding]\n"
                                  "reshard_after_forward = true\n[train]\nhang_timeout = '600sec'\n",
                                  "more.toml"));
  }

  struct Result {
    std::string digest, metrics;
    bool operator==(const Result&) const = default;
  };

  // Throws UserError if a run does not take the recipe.
  Result on(int ranks, const std::string& strategy) const {
    const Scratch scratch;
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = scratch.path("run");
    options.live = options.quiet = true;
    Setting recipe = recipe_;
    overlay(recipe, parse_recipe("[sharding]\nstrategy = '" + strategy + "'\n" +
                                     (strategy == "hybrid" ? "shard_size = 2\n" : ""),
                                 "more.toml"));
    if (train_in_one_process(recipe, options).exit_code != 0) return {"failed", ""};
    return {inspect_digest(options.run_dir), metrics_of(options.run_dir)};
  }

 private:
  void unset(const char* section, const char* key) {
    Setting* const found = recipe_.find(section)->find(key);
    if (found) found->value = std::monostate();
  }

  // All but what is measured.
  static std::string metrics_of(const std::string& run_dir) {
    std::istringstream lines(PosixDisk().read_text(run_dir + "/metrics.jsonl", 1 << 24));
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json numbers = nlohmann::json::parse(line);
      for (auto number = numbers.begin(); number != numbers.end();) {
        const std::string& name = number.key();
        const bool is_measured = name.ends_with("_ms") || name.ends_with("_per_s") ||
                                 name == "since_start_s" || name.find("memory") != std::string::npos;
        number = is_measured ? numbers.erase(number) : std::next(number);
      }
      all += numbers.dump() + "\n";
    }
    return all;
  }

  Setting recipe_;
};

TEST(ElasticDraws, HaveOneResultOnAnyRanksUnderAnyStrategy) {
  const std::vector<std::pair<int, const char*>> worlds{
      {2, "none"}, {3, "optimizer"}, {4, "gradients"}, {3, "full"}, {4, "hybrid"}, {4, "none"}, {2, "full"}};
  const RecipeSpace space(read_recipe(TUTTI_SOURCE_DIR "/examples/faults/drawn.toml"));
  const uint64_t seeds = is_nightly() ? 1000 : 10;
  int compared = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    try {
      const ElasticDraw draw(space.draw(seed, 0, 2).recipe);
      const ElasticDraw::Result alone = draw.on(1, "none");
      for (uint64_t other = 2 * seed; other < 2 * seed + 2; ++other, ++compared) {
        const auto& [ranks, strategy] = worlds[other % worlds.size()];
        const ElasticDraw::Result found = draw.on(ranks, strategy);
        EXPECT_EQ(found.digest, alone.digest) << "seed " << seed << ", " << strategy << " on " << ranks;
        EXPECT_EQ(found.metrics, alone.metrics) << "seed " << seed << ", " << strategy << " on " << ranks;
      }
    } catch (const UserError& error) {
      std::printf("  seed %d: %.200s\n", static_cast<int>(seed), error.headline().c_str());
    }
  }
  EXPECT_GT(compared, static_cast<int>(seeds));
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
