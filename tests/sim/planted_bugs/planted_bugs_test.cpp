#include "tests/sim/planted_bugs/planted_bugs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr int kEnough = 3;  // seeds that must catch it before the rest is left out

FaultPlan plan_of(const Bug& bug) {
  const std::string& faults = bug.faults;
  std::string toml;
  for (std::size_t begin = 0; begin < faults.size();) {
    const std::size_t end = std::min(faults.find(' ', begin), faults.size());
    toml += "[[fault]]\nkind = '" + faults.substr(begin, end - begin) + "'\nprobability = 0.5\n";
    begin = end + 1;
  }
  return make_fault_plan(parse_recipe(toml, "plan.toml"), bug.ranks);
}

SimSeams reference(const Bug& bug) { return bug.reference ? bug.reference() : SimSeams(); }

class PlantedBug : public testing::TestWithParam<Bug> {};

TEST_P(PlantedBug, IsCaughtWithin200Seeds) {
  const Bug& bug = GetParam();
  const Simulation simulation(small_job(bug.recipe), bug.ranks, plan_of(bug), bug.seams(), reference(bug));
  int caught = 0;
  uint64_t seed = 1;
  std::string finding;
  uint64_t first = 0;
  for (; seed <= kSeeds && caught < kEnough; ++seed) {
    const SeedResult result = simulation.run(seed);
    if (result.findings.empty()) continue;
    EXPECT_THAT(result.findings.front(), testing::HasSubstr(bug.shows)) << "seed " << seed;
    if (caught++ > 0) continue;
    finding = result.findings.front();
    first = seed;
  }
  std::printf("  caught first by seed %d, in %d of %d: %.200s\n", static_cast<int>(first), caught,
              static_cast<int>(seed - 1), finding.c_str());
  EXPECT_GT(caught, 0);
}

// The runs without a bug that those with one are held against: one for each fault plan, and one for each bug
// that says what the right way is.
std::vector<Bug> controls() {
  std::vector<Bug> found;
  std::set<std::string> plans;
  for (Bug& bug : planted_bugs())
    if (bug.reference || plans.insert(bug.faults + bug.recipe).second) found.push_back(std::move(bug));
  return found;
}

class WithoutPlantedBug : public testing::TestWithParam<Bug> {};

// Else the invariants that catch the bugs would catch anything.
TEST_P(WithoutPlantedBug, TheSameSeedsPass) {
  const Bug& bug = GetParam();
  const Simulation simulation(small_job(bug.recipe), bug.ranks, plan_of(bug), reference(bug), reference(bug));
  for (uint64_t seed = 1; seed <= 10; ++seed)
    EXPECT_THAT(simulation.run(seed).findings, testing::IsEmpty()) << "seed " << seed;
}

std::string name_of(const testing::TestParamInfo<Bug>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Simulation, PlantedBug, testing::ValuesIn(planted_bugs()), name_of);
INSTANTIATE_TEST_SUITE_P(Simulation, WithoutPlantedBug, testing::ValuesIn(controls()), name_of);

}  // namespace
}  // namespace tutti
