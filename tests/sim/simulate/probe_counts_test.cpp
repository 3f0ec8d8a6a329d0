#include "sim/simulate/probe_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/toml_reader.h"
#include "runtime/probe/probe.h"
#include "sim/simulate/simulation.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(ProbeCountsTest, SeedsAreCountedByProbe) {
  ProbeCounts counts({{"a: usual", "b.cpp:1"}, {"a: rare", "b.cpp:2"}, {"a: never", "a.cpp:9"}});
  EXPECT_THAT(counts.never_hit(), SizeIs(3));
  counts.add({"a: usual", "a: rare"});
  counts.add({"a: usual", "a: unknown"});
  EXPECT_EQ(counts.summary(), "2 of 3 hit");
  EXPECT_THAT(counts.never_hit(), ElementsAre("a.cpp:9: a: never"));
  EXPECT_THAT(counts.rarest(10), ElementsAre("1: a: rare", "2: a: usual"));
  EXPECT_THAT(counts.rarest(1), ElementsAre("1: a: rare"));
  EXPECT_FALSE(counts.all_hit());
  counts.add({"a: never"});
  EXPECT_TRUE(counts.all_hit());
  EXPECT_THAT(counts.never_hit(), IsEmpty());
}

TEST(ProbeCountsTest, ASimulatedRunHitsTheProbesOfItsStates) {
  const std::string plan = "[[fault]]\nkind = 'out_of_memory'\nphase = 'backward'\nrank = 1\nstep = 2\n";
  const Simulation simulation(small_job(), 3, make_fault_plan(parse_recipe(plan, "plan.toml"), 3));
  clear_probes();
  simulation.run(1);
  const std::vector<std::string> hit = hit_probes();
  EXPECT_THAT(hit, Contains("verdict: memory ran out on one rank of several"));
  EXPECT_THAT(hit, Contains("memory: ran out in a backward"));
  EXPECT_THAT(hit, Not(Contains("verdict: memory ran out on all ranks")));
  EXPECT_THAT(probe_places(), SizeIs(Gt(hit.size())));
}

// The checks of checkpoints, which read the files of each rank after a power loss, are not part of the run.
TEST(ProbeCountsTest, ChecksHitNoProbes) {
  const std::string plan = "[[fault]]\nkind = 'torn_write'\nrank = 1\nstep = 12\n";
  const Simulation simulation(small_job(), 2, make_fault_plan(parse_recipe(plan, "plan.toml"), 2));
  clear_probes();
  const SeedResult result = simulation.run(1);
  ASSERT_EQ(result.attempts, 1);
  ASSERT_THAT(result.faults, Contains(testing::Pair("torn_write", 1)));
  EXPECT_THAT(hit_probes(), Not(Contains("checkpoint: a file has another hash")));
}

}  // namespace
}  // namespace tutti
