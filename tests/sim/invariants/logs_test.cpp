#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tests/actors/everything.h"

namespace tutti {
namespace {

constexpr int kTwo = 2;
constexpr int64_t kBatches = 4;  // of an epoch

// The step that each attempt resumed from.
std::vector<int64_t> resumed_at(const SeedResult& result) {
  std::vector<int64_t> steps;
  for (const std::string& line : result.summary)
    if (const auto at = line.find("from step "); at != std::string::npos)
      steps.push_back(std::stoll(line.substr(at + 10)));
  return steps;
}

bool twice_in_one_epoch(const std::vector<int64_t>& steps) {
  const auto alike = [](int64_t one, int64_t next) {
    return one != next && one / kBatches == next / kBatches;
  };
  return std::adjacent_find(steps.begin(), steps.end(), alike) != steps.end();
}

// Every loss, rate, metric and log line, with as much at once as can be had.
TEST(LogsTest, AStoppedAndKilledRunLogsLikeAnUninterruptedOne) {
  const std::string model = "[model]\nkind = \"mlp\"\nhidden = [8]\n";
  const std::string more =
      "[scheduler]\nkind = \"reduce_lr_on_plateau\"\nmonitor = \"metrics/often/CrossEntropy\"\npatience = "
      "0\nthreshold = 0.5\nfactor = 0.5\n";
  const Setting recipe = resolve_recipe(
      parse_recipe(with_samples(kEverything, "shape = [6]\n") + model + more, "everything.toml"));
  const std::string faults =
      "[[fault]]\nkind = 'sigterm'\n[[fault]]\nkind = 'death'\nprobability = 0.3\n[[fault]]\nkind = "
      "'power_loss'\nprobability = 0.3\n";
  SimSeams seams;
  seams.job = [](Job& job, int) { add_steering(job); };
  const Simulation simulation(recipe, kTwo, make_fault_plan(parse_recipe(faults, "plan.toml"), kTwo), seams,
                              seams);
  EXPECT_THAT(simulation.fault_free().logged, testing::SizeIs(2));
  std::set<int64_t> seen;
  bool twice = false;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, testing::IsEmpty()) << "seed " << seed << "\n"
                                                     << testing::PrintToString(result.summary);
    const auto steps = resumed_at(result);
    seen.insert(steps.begin(), steps.end());
    twice |= twice_in_one_epoch(steps);
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({1, 2, 4, 8, 11})) << "the first, in mid-epoch, the last of one";
  EXPECT_TRUE(twice);
}

}  // namespace
}  // namespace tutti
