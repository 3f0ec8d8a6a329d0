#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "sim/simulate/simulation.h"
#include "tests/runtime/scratch.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kThreeRanks = 3;

FaultPlan once(const std::string& fault) {
  return make_fault_plan(parse_recipe("starts = 1\n[[fault]]\n" + fault, "plan.toml"), kThreeRanks);
}

// A fault in the second step of a run of three ranks.
SeedResult result_with(const std::string& fault, const std::string& more = "") {
  const Simulation simulation(small_job(more), kThreeRanks, once(fault + "step = 2\nphase = 'batch'\n"));
  const SeedResult result = simulation.run_twice(1);
  EXPECT_THAT(result.findings, IsEmpty()) << result.summary.front();
  EXPECT_EQ(result.weights, simulation.fault_free().weights);
  return result;
}

// Seconds that the first attempt took.
double seconds_of(const SeedResult& result) {
  const std::string& line = result.summary.front();
  return std::stod(line.substr(line.rfind(" after ") + 7));
}

TEST(NetworkFaultsTest, ALinkThatIsCutForEverEndsTheRunAndItsRankIsNamed) {
  const SeedResult to_zero = result_with("kind = 'cut'\nrank = 1\nto = 0\nseconds = 0\n");
  EXPECT_EQ(to_zero.attempts, 2);
  EXPECT_THAT(to_zero.summary.front(), HasSubstr("rank 1 has not been heard for 10 s"));
  const SeedResult from_zero = result_with("kind = 'cut'\nrank = 0\nto = 2\nseconds = 0\n");
  EXPECT_EQ(from_zero.attempts, 2);
  EXPECT_THAT(from_zero.summary.front(), HasSubstr("rank 0 has not been heard for 10 s"));
  // Control messages do not use the link, but collectives do.
  const SeedResult aside = result_with("kind = 'cut'\nrank = 1\nto = 2\nseconds = 0\n");
  EXPECT_EQ(aside.attempts, 2);
  EXPECT_THAT(aside.summary.front(), HasSubstr("a collective hangs: every rank waits for it"));
}

// Rank 2 never learns the last verdict, and all other ranks have trained to the end.
TEST(NetworkFaultsTest, ARankThatWaitsForRanksThatAreDoneHangs) {
  const FaultPlan plan = once("kind = 'cut'\nrank = 1\nto = 2\nseconds = 0\nstep = 15\nphase = 'verdict'\n");
  const std::string evaluation = "[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [6]\n";
  int hung = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SeedResult result = Simulation(small_job(evaluation), kThreeRanks, plan).run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed;
    hung += result.summary.front().find("rank 2 waits for it, all others are done") != std::string::npos;
  }
  EXPECT_GT(hung, 0);
}

TEST(NetworkFaultsTest, ALinkThatHealsInTimeDelaysTheRunAndNothingElse) {
  for (const char* to : {"0", "2"}) {
    const SeedResult result =
        result_with("kind = 'cut'\nrank = 1\nseconds = 6\nto = " + std::string(to) + "\n");
    EXPECT_EQ(result.attempts, 1);
    EXPECT_GT(result.faults.at("cut"), 0);
    EXPECT_GT(seconds_of(result), 6);
  }
}

TEST(NetworkFaultsTest, APauseWithinTheTimeoutIsADelayAndALongerPauseEndsTheRun) {
  for (const char* rank : {"0", "1"}) {
    const std::string pause = "kind = 'pause'\nrank = " + std::string(rank) + "\nseconds = ";
    const SeedResult shorter = result_with(pause + "8\n");
    EXPECT_EQ(shorter.attempts, 1);
    EXPECT_EQ(shorter.faults.at("pause"), 1);
    EXPECT_GT(seconds_of(shorter), 8);
    const SeedResult longer = result_with(pause + "30\n");
    EXPECT_EQ(longer.attempts, 2);
    EXPECT_THAT(longer.summary.front(),
                HasSubstr("rank " + std::string(rank) + " has not been heard for 10 s"));
    EXPECT_LT(seconds_of(longer), 16) << "mpirun kills a process that stands still";
  }
}

TEST(NetworkFaultsTest, ASlowLinkAndAClogDelayTheRun) {
  const SeedResult slow = result_with("kind = 'slow_link'\nrank = 1\nto = 0\nseconds = 2\ncount = 2\n");
  EXPECT_EQ(slow.faults.at("slow_link"), 2);
  EXPECT_GT(seconds_of(slow), 2);
  const SeedResult clog = result_with("kind = 'clog'\nrank = 1\nseconds = 6\n");
  EXPECT_GT(clog.faults.at("clog"), 2);
  EXPECT_GT(seconds_of(clog), 3);
}

TEST(NetworkFaultsTest, ASlowDiskDelaysItsRank) {
  const SeedResult result = result_with("kind = 'slow_disk'\nrank = 0\nseconds = 2\ncount = 3\n");
  EXPECT_EQ(result.faults.at("slow_disk"), 3);
  EXPECT_GT(seconds_of(result), 4);
}

// Not a message of the run comes in another order, whatever logs the run writes.
TEST(NetworkFaultsTest, AClockThatJumpsChangesNothingButStamps) {
  const std::string loggers = "[[loggers]]\nkind = 'tensorboard'\n[[loggers]]\nkind = 'wandb'\n";
  const Simulation plain(small_job(loggers), kThreeRanks, {});
  for (const char* rank : {"0", "2"}) {
    const SeedResult jumped =
        result_with("kind = 'clock_jump'\nseconds = 7200\nrank = " + std::string(rank) + "\n", loggers);
    EXPECT_EQ(jumped.faults.at("clock_jump"), 1);
    EXPECT_EQ(jumped.deliveries, plain.run(1).deliveries);
    EXPECT_THAT(jumped.summary.front(), HasSubstr("trained to the end"));
  }
}

TEST(NetworkFaultsTest, ALinkNeedsTwoRanks) {
  const std::string why = message_of<UserError>([] { once("kind = 'cut'\nrank = 1\nto = 1\n"); });
  EXPECT_THAT(why, HasSubstr("plan.toml:5: fault.0.to = 1: expected another rank than the sender's"));
  EXPECT_THAT(message_of<UserError>([] { once("kind = 'slow_link'\nto = 3\n"); }),
              HasSubstr("there are 3 ranks, counted from 0"));
  const Simulation alone(small_job(), 1, once("kind = 'clog'\n"));
  const SeedResult result = alone.run(1);
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_EQ(result.faults.at("clog"), 0);
}

}  // namespace
}  // namespace tutti
