#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

FaultPlan faults_of(const std::string& toml, int ranks) {
  return make_fault_plan(parse_recipe(toml, "plan.toml"), ranks);
}

int64_t times(const SeedResult& result, const std::string& label) {
  const auto found = result.faults.find(label);
  return found == result.faults.end() ? 0 : found->second;
}

TEST(FaultsTest, RulesOfOneKindAreDistinguished) {
  const FaultPlan plan = faults_of(
      "[[fault]]\nkind = 'disk_full'\n[[fault]]\nkind = 'slow'\n[[fault]]\nkind = 'disk_full'\n", 2);
  EXPECT_EQ(plan.rules[0].label, "disk_full (rule 1)");
  EXPECT_EQ(plan.rules[1].label, "slow");
  EXPECT_EQ(plan.rules[2].label, "disk_full (rule 3)");
  SimAttempt attempt;
  attempt.faults = {{"disk_full (rule 3)", {FaultKind::kDiskFull, 1}}, {"slow", {FaultKind::kSlow, 0}}};
  EXPECT_TRUE(attempt.had_fault(FaultKind::kDiskFull));
  EXPECT_FALSE(attempt.had_fault(plan.rules[0]));
  EXPECT_TRUE(attempt.had_fault(plan.rules[2]));
  EXPECT_FALSE(attempt.had_fault(FaultKind::kSlow));
}

TEST(FaultsTest, EachRuleIsCountedForItself) {
  const std::string kind = "[[fault]]\nkind = 'write_error'\n";
  const Simulation simulation(small_job(), 2, faults_of(kind + kind + "file = 'no such file'\n", 2));
  int64_t first = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed;
    first += times(result, "write_error (rule 1)");
    EXPECT_EQ(times(result, "write_error (rule 2)"), 0);
  }
  EXPECT_GT(first, 0);
}

// The last checkpoint is published when all is trained, and there is nothing left to stop.
TEST(FaultsTest, ARequestToStopThatComesTooLateDoesNotCount) {
  const std::string late = "starts = 1\n[[fault]]\nkind = 'sigterm'\nrank = 0\nstep = 15\nphase = ";
  const Simulation too_late(small_job(), 3, faults_of(late + "'publish'\n", 3));
  const Simulation in_time(small_job(), 3, faults_of(late + "'batch'\n", 3));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SeedResult result = too_late.run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed;
    EXPECT_EQ(times(result, "sigterm"), 0) << "seed " << seed;
    EXPECT_EQ(times(in_time.run(seed), "sigterm"), 1) << "seed " << seed;
  }
}

// The most heartbeats of another rank that reach rank 0 between two of its own.
class HearsBetweenItsOwn final : public Transport {
 public:
  using Counts = std::map<int, int>;
  HearsBetweenItsOwn(std::unique_ptr<Transport> below, std::shared_ptr<Counts> most)
      : below_(std::move(below)), most_(std::move(most)) {}
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  void send(int to, std::string bytes) override {
    if (to == 1 && parse_heartbeat(bytes)) heard_.clear();
    below_->send(to, std::move(bytes));
  }
  std::optional<Packet> poll() override {
    auto packet = below_->poll();
    if (packet && parse_heartbeat(packet->bytes)) {
      int& most = (*most_)[packet->from];
      most = std::max(most, ++heard_[packet->from]);
    }
    return packet;
  }

 private:
  std::unique_ptr<Transport> below_;
  std::shared_ptr<Counts> most_;
  Counts heard_;
};

// Half a second and a bit lies between two that are on time; those that are late come several at a time.
// Steps are slow, so that there are many.
TEST(FaultsTest, AReorderThatNamesARankHitsNoOther) {
  const auto most = std::make_shared<HearsBetweenItsOwn::Counts>();
  SimSeams seams;
  seams.transport = [most](std::unique_ptr<Transport> below, int rank) -> std::unique_ptr<Transport> {
    if (rank != 0) return below;
    return std::make_unique<HearsBetweenItsOwn>(std::move(below), most);
  };
  const FaultPlan plan = faults_of(
      "starts = 1\n[[fault]]\nkind = 'slow'\nrank = 0\nstep = 1\nphase = 'load'\ncount = 15\n"
      "[[fault]]\nkind = 'reorder'\nrank = 1\nstep = 1\nphase = 'load'\nseconds = 5\ncount = 1000\n",
      3);
  const Simulation simulation(small_job(), 3, plan, seams);
  const SeedResult result = simulation.run(1);
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_GT(times(result, "slow"), 10);
  EXPECT_GT(times(result, "reorder"), 0);
  EXPECT_GE((*most)[1], 3);
  EXPECT_LE((*most)[2], 2);
}

// A run of 10,000 seeds is not to print one for each full disk.
TEST(FaultsTest, WarningsOfWritersStayInTheRanksLogs) {
  const std::string loggers = "[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'tensorboard'\n";
  const Simulation simulation(
      small_job(loggers), 2,
      faults_of("[[fault]]\nkind = 'disk_full'\nrank = 0\ncount = 20\nfile = '/simulated/run/'\n", 2));
  testing::internal::CaptureStderr();
  int64_t fired = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) fired += times(simulation.run(seed), "disk_full");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("cannot write")));
  EXPECT_GT(fired, 0);
}

}  // namespace
}  // namespace tutti
