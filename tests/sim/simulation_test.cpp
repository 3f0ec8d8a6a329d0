#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "io/recipe.h"
#include "tests/actors/second_pass.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

FaultPlan plan_of(const std::string& toml, int ranks) {
  return make_fault_plan(parse_recipe(toml, "plan.toml"), ranks);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(SimulationTest, ARunWithoutFaultsKeepsEveryInvariant) {
  const Simulation simulation(small_job(), 3, {});
  std::set<uint64_t> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.story);
    EXPECT_EQ(result.starts, 1);
    orders.insert(result.deliveries);
  }
  EXPECT_EQ(orders.size(), 20u);
}

class EachFault : public testing::TestWithParam<std::string> {};

TEST_P(EachFault, HappensAndBreaksNothing) {
  constexpr int kRanks = 3;
  const FaultPlan plan = plan_of("[[fault]]\nkind = '" + GetParam() + "'\n", kRanks);
  const Simulation simulation(small_job(), kRanks, plan);
  int64_t fired = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const SeedResult result = simulation.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.story);
    for (const auto& [name, count] : result.faults) fired += count;
  }
  EXPECT_GT(fired, 10);
}

// Each step has a second pass, in which memory runs out as well.
TEST(SimulationTest, StepsOfTwoPassesKeepEveryInvariant) {
  constexpr int kRanks = 3;
  SimSeams seams;
  seams.job = [](Job& job, int) {
    job.listeners = [](int) {
      Engine::Options options;
      options.algorithms = {std::make_shared<SecondPass>(0.1)};
      return options;
    };
  };
  for (const char* kind : {"out_of_memory", "death", "sigterm"}) {
    const Simulation simulation(small_job(), kRanks,
                                plan_of("[[fault]]\nkind = '" + std::string(kind) + "'\n", kRanks), seams);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const SeedResult result = simulation.run_twice(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << kind << " seed " << seed << "\n" << joined(result.story);
    }
  }
}

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& entry : fault_catalogs()[1].entries) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Simulation, EachFault, testing::ValuesIn(fault_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
