#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "io/recipe.h"
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

// Files, and a program that is not started.
TEST(SimulationTest, LoggersBreakNothingWhateverHappens) {
  constexpr int kRanks = 2;
  const std::string loggers =
      "[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'file'\nrank_zero_only = false\n[[loggers]]\nkind = "
      "'tensorboard'\n[[loggers]]\nkind = 'command'\ncommand = 'touch /started'\n";
  std::string faults;
  for (const char* kind : {"death", "disk_full", "write_error", "torn_write"})
    faults += "[[fault]]\nkind = '" + std::string(kind) + "'\n";
  const Simulation simulation(small_job(loggers), kRanks, plan_of(faults, kRanks));
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const SeedResult result = simulation.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.story);
  }
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

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& entry : fault_catalogs()[1].entries) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Simulation, EachFault, testing::ValuesIn(fault_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
