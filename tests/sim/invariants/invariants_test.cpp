#include "sim/invariants/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "io/checkpoint/run_state.h"
#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kWorld = 3;

TimePoint at_s(int64_t s) { return TimePoint(std::chrono::seconds(s)); }

// Runs that were never run.
class InvariantsTest : public testing::Test {
 protected:
  using Check = void (*)(const Reference&, const SimRun&, Findings&);

  static SimAttempt an_attempt(int64_t steps = 1) {
    SimAttempt attempt;
    attempt.resumed_at = 0;
    attempt.ends.resize(kWorld);
    attempt.steps.resize(kWorld);
    for (auto& rank : attempt.steps)
      for (int64_t step = 1; step <= steps; ++step) rank[step].weights = 1;
    return attempt;
  }

  static RankEnd ended(EndKind kind) { return {kind, "rank 0 supervisor: in any words"}; }

  Findings found(Check check, const std::string& plan, const SimAttempt& attempt) const {
    const FaultPlan faults =
        plan.empty() ? FaultPlan() : make_fault_plan(parse_recipe(plan, "plan.toml"), kWorld);
    const Reference reference{job, faults, fault_free, [this](const std::vector<int>&) -> const SimAttempt& {
                                return fault_free.attempts.front();
                              }};
    SimRun run;
    run.attempts.push_back(attempt);
    run.saved_step = fault_free.saved_step;
    Findings findings;
    check(reference, run, findings);
    return findings;
  }

  Job job = simulated_job(small_job(), kWorld);
  SimRun fault_free{.attempts = {an_attempt(15)}, .saved_step = 15};
};

const char* const kLate = "[[fault]]\nkind = 'delay'\ncount = 1000\nseconds = ";

TEST_F(InvariantsTest, ManyLateMessagesExcuseNoMoreThanOneDoes) {
  SimAttempt attempt = an_attempt();
  attempt.faults["delay"] = {FaultKind::kDelay, 1000};
  attempt.ends[0] = ended(EndKind::kHang);
  EXPECT_THAT(found(check_ends, std::string(kLate) + "1\n", attempt),
              ElementsAre(HasSubstr("attempt 1 ended badly")));
  EXPECT_THAT(found(check_ends, std::string(kLate) + "9.5\n", attempt), IsEmpty());
}

TEST_F(InvariantsTest, LateMessagesExcuseNothingElse) {
  SimAttempt attempt = an_attempt();
  attempt.faults["delay"] = {FaultKind::kDelay, 1000};
  attempt.ends[0] = {EndKind::kOperatingError, "the loss is gone"};
  EXPECT_THAT(found(check_ends, std::string(kLate) + "20\n", attempt),
              ElementsAre(HasSubstr("the loss is gone")));
  attempt.ends[0] = ended(EndKind::kHang);
  EXPECT_THAT(found(check_ends, std::string(kLate) + "20\n", attempt), IsEmpty());
  attempt.faults.erase("delay");
  EXPECT_THAT(found(check_ends, std::string(kLate) + "20\n", attempt), testing::SizeIs(1)) << "none was late";
}

TEST_F(InvariantsTest, ALateHeartbeatEndsARankOnlyWhereItIsAskedToStop) {
  SimAttempt attempt = an_attempt();
  attempt.faults["delay"] = {FaultKind::kDelay, 5};
  attempt.ends[0] = ended(EndKind::kSilence);
  EXPECT_THAT(found(check_ends, std::string(kLate) + "1\n", attempt), testing::SizeIs(1));
  attempt.asked_to_stop = true;
  EXPECT_THAT(found(check_ends, std::string(kLate) + "1\n", attempt), IsEmpty());
  EXPECT_THAT(found(check_ends, std::string(kLate) + "0.5\n", attempt), testing::SizeIs(1));
}

// mpirun ends those that are left.
TEST_F(InvariantsTest, EndsCausedByAnExcusedEndAreExcused) {
  const std::string hang = "[[fault]]\nkind = 'hang'\n";
  SimAttempt attempt = an_attempt();
  attempt.faults["hang"] = {FaultKind::kHang, 1};
  attempt.ends[1].kind = EndKind::kKilled;
  attempt.ends[2] = ended(EndKind::kLostRank);
  EXPECT_THAT(found(check_ends, hang, attempt), testing::SizeIs(1)) << "nothing began it";
  attempt.ends[0] = ended(EndKind::kHang);
  EXPECT_THAT(found(check_ends, hang, attempt), IsEmpty());
  attempt.ends[2] = ended(EndKind::kProgramError);
  EXPECT_THAT(found(check_ends, hang, attempt), testing::SizeIs(1));
}

TEST_F(InvariantsTest, AFullDiskMayCostTheLastCheckpointAndNothingMore) {
  const std::string full = "[[fault]]\nkind = 'disk_full'\n";
  SimAttempt attempt = an_attempt();
  attempt.faults["disk_full"] = {FaultKind::kDiskFull, 1};
  for (RankEnd& end : attempt.ends) end.kind = EndKind::kNoLastCheckpoint;
  EXPECT_THAT(found(check_ends, full, attempt), IsEmpty());
  attempt.faults.clear();
  EXPECT_THAT(found(check_ends, full, attempt), testing::SizeIs(1));
  attempt.faults["disk_full"] = {FaultKind::kDiskFull, 1};
  attempt.ends[1] = ended(EndKind::kOperatingError);
  EXPECT_THAT(found(check_ends, full, attempt), testing::SizeIs(1));
}

TEST_F(InvariantsTest, ARunOutOfMemoryHasSavedItsSteps) {
  SimAttempt attempt = an_attempt(7);
  const auto end_all = [&](EndKind kind) {
    for (RankEnd& end : attempt.ends) end = ended(kind);
  };
  const auto lost = [&] {
    SimRun run;
    run.attempts.push_back(attempt);
    Findings findings;
    check_nothing_lost(run, findings);
    return findings;
  };
  end_all(EndKind::kOutOfMemoryInStep);
  attempt.published[4] = {};
  EXPECT_THAT(lost(), ElementsAre(HasSubstr("after step 7, and saved what was trained until step 4 only")));
  attempt.faults["write_error"] = {FaultKind::kWriteError, 1};
  EXPECT_THAT(lost(), IsEmpty());
  attempt.faults.clear();
  end_all(EndKind::kOutOfMemoryInEvaluation);
  EXPECT_THAT(lost(), testing::SizeIs(1));
  attempt.published[7] = {};
  EXPECT_THAT(lost(), IsEmpty());
  attempt.published.clear();
  attempt.resumed_at = 7;
  EXPECT_THAT(lost(), IsEmpty()) << "it resumed from there";
}

TEST_F(InvariantsTest, AHangIsNoticedWithinABound) {
  const std::string hang = "[[fault]]\nkind = 'hang'\n";
  SimAttempt attempt = an_attempt();
  attempt.faults["hang"] = {FaultKind::kHang, 1};
  attempt.hangs = {{at_s(3), kNever}};
  attempt.took = at_s(17);
  EXPECT_THAT(found(check_hangs, hang, attempt), IsEmpty());
  attempt.took = at_s(40);
  EXPECT_THAT(found(check_hangs, hang, attempt), ElementsAre(HasSubstr("a collective hung for 37")));
  attempt.hangs = {{at_s(3), at_s(8)}};
  EXPECT_THAT(found(check_hangs, hang, attempt), IsEmpty()) << "it ended by itself";
}

TEST_F(InvariantsTest, AFewStepsMayBeDoneAfterARequestToStop) {
  const auto stopped_in = [](int64_t step) {
    SimRun run;
    run.attempts.push_back(an_attempt(10));
    run.attempts[0].stops = {{.rank = 1, .step = step}};
    Findings findings;
    check_stops(run, findings);
    return findings;
  };
  EXPECT_THAT(stopped_in(10), IsEmpty());
  EXPECT_THAT(stopped_in(6), IsEmpty());
  EXPECT_THAT(stopped_in(3),
              ElementsAre("in attempt 1 rank 1 was asked to stop in step 3, and step 10 was still done"));
}

TEST_F(InvariantsTest, MemoryThatIsStillHeldIsAFinding) {
  SimRun run;
  run.attempts.push_back(an_attempt());
  Findings findings;
  check_memory(run, findings);
  EXPECT_THAT(findings, IsEmpty());
  run.attempts[0].held.push_back({.rank = 2, .step = 5, .bytes = 64});
  check_memory(run, findings);
  EXPECT_THAT(findings,
              ElementsAre("in attempt 1, rank 2: step 5: 64 bytes of the aborted step are still held"));
}

TEST_F(InvariantsTest, APublishedCheckpointHasAllBitsOfTheRunWithoutFaults) {
  fault_free.attempts.front().published = {{4, {.all = 11}}, {15, {.all = 12}}};
  SimAttempt attempt = an_attempt(15);
  attempt.published = {{4, {.all = 11}}, {5, {.all = 99}}, {15, {.all = 12}}};
  EXPECT_THAT(found(check_bits, "", attempt), IsEmpty());
  attempt.published[4].all = 0;  // an evaluation is still due
  EXPECT_THAT(found(check_bits, "", attempt), IsEmpty());
  attempt.published[15].all = 13;
  EXPECT_THAT(found(check_bits, "", attempt),
              ElementsAre(AllOf(HasSubstr("after step 15"), HasSubstr("another state"))));
}

TEST_F(InvariantsTest, ARunThatCameToItsEndHasLoggedWhatTheOneWithoutFaultsHas) {
  fault_free.logged["metrics.jsonl"] = {"{\"step\":1}", "{\"step\":2}"};
  const auto found_in = [&](const std::vector<std::string>& lines, const SimAttempt& attempt) {
    SimRun run;
    run.attempts.push_back(attempt);
    run.logged["metrics.jsonl"] = lines;
    const FaultPlan plan = make_fault_plan(
        parse_recipe("[[fault]]\nkind = 'disk_full'\nfile = 'metrics'\n", "plan.toml"), kWorld);
    const Reference reference{job, plan, fault_free, {}};
    Findings findings;
    check_logs(reference, run, findings);
    return findings;
  };
  const auto& right = fault_free.logged["metrics.jsonl"];
  EXPECT_THAT(found_in(right, an_attempt()), IsEmpty());
  EXPECT_THAT(found_in({right[0], right[0]}, an_attempt()),
              ElementsAre("metrics.jsonl, line 2, has {\"step\":1}; that of the run without faults has "
                          "{\"step\":2}"));
  EXPECT_THAT(found_in({right[0]}, an_attempt()), ElementsAre(HasSubstr("line 2, has nothing")));
  EXPECT_THAT(found_in({right[0], right[1], right[1]}, an_attempt()),
              ElementsAre(HasSubstr("the run without faults has nothing")));
  for (const auto& [label, kind] :
       {std::pair("disk_full", FaultKind::kDiskFull), std::pair("out_of_memory", FaultKind::kOutOfMemory)}) {
    SimAttempt struck = an_attempt();
    struck.faults[label] = {kind, 1};
    EXPECT_THAT(found_in({}, struck), IsEmpty()) << label;
  }
}

TEST_F(InvariantsTest, MeasurementsInLogsAreNotCompared) {
  SimDisk disk;
  const auto view = disk.view(0);
  view->make_folders(job.run_dir);
  const auto put = [&](const std::string& name, const std::string& text) {
    view->open(job.run_dir + "/" + name, /*truncate=*/true)->append(std::as_bytes(std::span(text)));
  };
  put("metrics.jsonl", "{\"step\": 1, \"loss\": 0.5, \"step_ms\": 3, \"throughput/batches_per_sec\": 9}\n");
  put("metrics-rank0.csv", "step,batch,epoch,name,value\n1,0,0,time/batch,0\n1,0,0,time/total,0.2\n");
  put("log.txt", "of other kinds nothing is known\n");
  EXPECT_THAT(logged_lines(*view, job.run_dir),
              ElementsAre(testing::Pair("metrics-rank0.csv",
                                        ElementsAre("step,batch,epoch,name,value", "1,0,0,time/batch,0")),
                          testing::Pair("metrics.jsonl", ElementsAre("{\"step\":1,\"loss\":0.5}"))));
}

class CheckpointsOfSimDiskTest : public InvariantsTest {
 protected:
  std::string folder(int64_t step) const { return job.checkpoints + "/ep0-ba" + std::to_string(step); }

  void publish(int64_t step) {
    RunState state;
    state.time.batch = step;
    write_checkpoint(*view, folder(step), sample_tensors(), 2, state.to_json());
  }

  // A piece of a file is written once more, and lands or does not.
  void write_over(int64_t step, SimDisk::WriteOutcome outcome) {
    const auto writer = disk.view(1, [&](const SimDisk::Call&) { return outcome; });
    const std::string other(100, 'x');
    writer->open(folder(step) + "/rank-0.h5", false)->write_at(0, std::as_bytes(std::span(other)));
  }

  // Of a checkpoint that holds these.
  SavedBits bits_of(const std::map<std::string, at::Tensor>& tensors, const RunState& state) {
    const std::string one = folder(++written_);
    write_checkpoint(*view, one, tensors, 2, state.to_json());
    return known.read(*view, one).bits;
  }

  Findings published(uint64_t seed = 1) {
    Findings findings;
    newest = check_published(disk, job, RandomKey(seed, "power"), known, findings);
    return findings;
  }

  SimDisk disk;
  std::unique_ptr<Disk> view = disk.view(0);
  KnownCheckpoints known;
  KnownCheckpoint newest;

 private:
  int64_t written_ = 0;
};

TEST_F(CheckpointsOfSimDiskTest, APublishedButIncompleteCheckpointIsFound) {
  publish(4);
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_EQ(newest.step, 4);
  write_over(4, SimDisk::WriteOutcome::kDone);
  EXPECT_THAT(published(), testing::Contains(HasSubstr("not whole when it is published")));
}

TEST_F(CheckpointsOfSimDiskTest, ACheckpointDamagedByALostWriteIsExcused) {
  publish(4);
  write_over(4, SimDisk::WriteOutcome::kLost);
  EXPECT_THAT(published(), IsEmpty());
}

TEST_F(CheckpointsOfSimDiskTest, APublishedButMissingCheckpointIsFound) {
  EXPECT_THAT(published(), ElementsAre("a checkpoint was published, and there is none"));
}

// It is whole, and not on the disk yet.
TEST_F(CheckpointsOfSimDiskTest, ADamagedFileExcusesNoOther) {
  publish(4);
  write_over(4, SimDisk::WriteOutcome::kLost);
  publish(8);
  EXPECT_THAT(published(), IsEmpty());
  const std::string manifest = folder(8) + "/manifest.json";
  const auto content = view->read(manifest);
  view->open(manifest, /*truncate=*/true)->append(content);
  std::size_t lost = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) lost += published(seed).empty() ? 0 : 1;
  EXPECT_EQ(newest.step, 8);
  EXPECT_GT(lost, 0u);
}

// The clock and the lack of memory leave their traces, which are no other state.
TEST_F(CheckpointsOfSimDiskTest, BitsAreOfAllThatNoClockDecides) {
  auto tensors = sample_tensors();
  RunState state;
  state.time.batch = 4;
  const auto bits = [&] { return bits_of(tensors, state).all; };
  const uint64_t before = bits();
  EXPECT_NE(before, 0u);
  state.time.total_wct = 3;
  state.last_step.before.epoch_wct = 2;
  state.accumulation.count = 2;
  state.metrics["eval/MulticlassAccuracy"] = 0.5;
  state.listeners["callbacks/SpeedMonitor"] = "{}";
  EXPECT_EQ(bits(), before);
  state.listeners["algorithms/EMA"] = "{}";
  const uint64_t with_a_listener = bits();
  EXPECT_NE(with_a_listener, before);
  tensors["optimizers/fc.bias/step"] = at::scalar_tensor(59, at::kFloat);
  EXPECT_NE(bits(), with_a_listener);
  state.rest = {ResumePoint::Place::kAtBatchEnd, {"eval"}};
  EXPECT_EQ(bits(), 0u);
}

}  // namespace
}  // namespace tutti
