#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "job/recipe_catalogs.h"
#include "recipe/recipe_space.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "sim/simulate/drawn_seed.h"
#include "sim/simulate/seed_workers.h"
#include "sim/simulate/shrink.h"
#include "sim/simulate/simulation.h"
#include "tests/runtime/nightly.h"
#include "tests/sim/planted_bugs/planted_bugs.h"

namespace tutti {
namespace {

constexpr uint64_t kMostDrawnSeeds = 400;
constexpr uint64_t kSeedsOfASmallerCase = 16;
constexpr int kMostSmallerCases = 400;
constexpr std::size_t kMostFaultsLeft = 3;
constexpr unsigned kSecondsOfASeed = 120;

const std::string kFaults = TUTTI_SOURCE_DIR "/examples/faults/";

class PlantedBugInDrawnRecipes : public testing::TestWithParam<Bug> {
 protected:
  SimSeams reference() const { return GetParam().reference ? GetParam().reference() : SimSeams(); }

  // Bugs that need more of a recipe have it over what is drawn.
  RecipeSpace space() const {
    Setting written = read_recipe(kFaults + "drawn.toml");
    if (!GetParam().recipe.empty()) add_to_each_draw(written, parse_recipe(GetParam().recipe, "bug.toml"));
    return RecipeSpace(written);
  }

  static void add_to_each_draw(Setting& written, Setting keys) {
    Setting::Table draw;
    draw.emplace_back("options", Setting(Setting::Array{std::move(keys)}, "draw.options", {}));
    std::get<Setting::Array>(written.find("draw")->value)
        .emplace_back(std::move(draw), "draw", Setting().position);
  }

  SeedResult simulate(const FailingCase& failing) const try {
    const FaultPlan plan =
        failing.plan.is_none() ? FaultPlan() : make_fault_plan(failing.plan, failing.ranks);
    const Simulation simulation(resolve_recipe(failing.recipe), failing.ranks, plan, GetParam().seams(),
                                reference());
    SeedResult result;
    for (uint64_t seed = failing.seed; seed < failing.seed + kSeedsOfASmallerCase; ++seed) {
      print_begin(seed);
      if (result = simulation.run(seed); !result.findings.empty()) break;
    }
    return result;
  } catch (const UserError&) {
    return {};
  }

  std::optional<SeedFinding> finding_of(const FailingCase& failing) const {
    const SeedResult result = in_child([&] { return simulate(failing); });
    if (result.findings.empty()) return std::nullopt;
    return SeedFinding{result.seed, result.findings.front()};
  }

  static void print_begin(uint64_t seed) {
    std::printf("%s\n", begin_line(seed).c_str()), std::fflush(stdout);
  }

  // Runs in a process of its own, since an assertion of the product may end it.
  static SeedResult in_child(const std::function<SeedResult()>& work) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]), close(ends[1]);
      alarm(kSecondsOfASeed);
      std::printf("%s\n", result_line(work()).c_str());
      std::fflush(stdout);
      _exit(0);
    }
    close(ends[1]);
    SeedResult result;
    bool ended = false;
    FILE* const lines = fdopen(ends[0], "r");
    char* text = nullptr;
    std::size_t room = 0;
    for (ssize_t size; (size = getline(&text, &room, lines)) > 0;) {
      const std::string line(text, static_cast<std::size_t>(size - 1));
      if (const auto seed = parse_begin_line(line)) result.seed = *seed;
      if (auto parsed = parse_result_line(line)) result = std::move(*parsed), ended = true;
    }
    free(text);
    fclose(lines);
    int status = 0;
    waitpid(child, &status, 0);
    if (!ended && WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM)
      result.findings = {"crashed by signal " + std::to_string(WTERMSIG(status))};
    return result;
  }
};

TEST_P(PlantedBugInDrawnRecipes, IsFoundAndShrinks) {
  if (!is_nightly()) GTEST_SKIP() << "takes a minute a bug";
  const Bug& bug = GetParam();
  const RecipeSpace space = this->space();
  DrawnSeedOptions options;
  options.plan = read_recipe(kFaults + "all.toml");
  options.once = true;
  options.seams = bug.seams();
  options.reference = reference();
  SeedResult failed;
  while (failed.findings.empty() && failed.seed < kMostDrawnSeeds)
    failed = in_child([&, seed = failed.seed + 1] {
      print_begin(seed);
      return simulate_drawn(space, options, seed);
    });
  ASSERT_THAT(failed.findings, testing::Not(testing::IsEmpty())) << "not found";
  if (!failed.findings.front().starts_with("crashed"))
    EXPECT_THAT(failed.findings.front(), testing::HasSubstr(bug.shows));
  FailingCase failing = failing_case(space, failed, options.ranks);
  failing.plan = options.plan;
  const FailingCase small = shrink(
      failing, [this](const FailingCase& candidate) { return finding_of(candidate); }, kMostSmallerCases);
  const Setting* left = small.plan.is_table() ? small.plan.find("fault") : nullptr;
  const std::size_t faults = left ? left->array().size() : 0;
  std::printf("  | %s | %d | %d | %zu | %.100s |\n", bug.name.c_str(), static_cast<int>(failed.seed),
              small.ranks, faults, small.finding.c_str());
  std::fflush(stdout);
  EXPECT_LE(faults, kMostFaultsLeft);
}

INSTANTIATE_TEST_SUITE_P(Simulation, PlantedBugInDrawnRecipes, testing::ValuesIn(planted_bugs()),
                         [](const testing::TestParamInfo<Bug>& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
