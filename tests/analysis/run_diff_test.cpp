#include "analysis/run_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <optional>
#include <regex>

#include "runtime/error.h"
#include "tests/analysis/recorded_runs.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RunDiffTest : public testing::Test {
 protected:
  RunToRecord run(const std::string& name) const { return {.dir = folder_.path(name)}; }

  // A digest of another value, and where its key has parts, in the last of them.
  struct Other {
    int64_t step;
    int rank;
    std::string key;
  };

  // Steps [first, last), counted from 0, and the weights before and after them; `others` are not as usual.
  static void record(const RunToRecord& run, int64_t first, int64_t last,
                     const std::vector<Other>& others = {}) {
    for (int r = 0; r < run.world; ++r) {
      const auto writer = run.rank(r);
      writer->delivery("compute", "", "Start", TimePoint());
      writer->parts("sync/bucket 0", {"0.weight", "0.bias"});
      writer->parts("compute/batch", {"input", "target"});
      writer->parts("compute/weights", {"0.weight", "0.bias"});
      const auto put = [&](int64_t step, const std::string& key) { digest(*writer, r, step, key, others); };
      put(first, "compute/weights");
      for (int64_t step = first; step < last; ++step)
        for (const char* key : {"compute/batch", "compute/loss", "sync/bucket 0"}) put(step, key);
      put(last, "compute/weights");
    }
  }

  static void digest(JournalWriter& writer, int rank, int64_t step, const std::string& key,
                     const std::vector<Other>& others) {
    uint64_t value = std::bit_cast<uint64_t>(1.5 + static_cast<double>(step));
    std::vector<uint16_t> parts{7, static_cast<uint16_t>(step)};
    for (const Other& other : others) {
      if (other.step != step || other.rank != rank || other.key != key) continue;
      value = std::bit_cast<uint64_t>(0.25);
      parts[1] = 999;
    }
    if (key == "compute/loss") parts.clear();
    writer.digest(key, step, value, parts);
  }

  std::string diff() const { return diff_runs(folder_.path("a"), folder_.path("b")).text; }
  std::string refused() const try { return "not refused: " + diff(); } catch (const UserError& error) {
    return error.what();
  }

  Scratch folder_;
};

TEST_F(RunDiffTest, EqualRunsAreCounted) {
  record(run("a"), 0, 3);
  record(run("b"), 0, 3);
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_TRUE(result.same);
  EXPECT_EQ(result.text, "equal: 3 steps, 22 digests of 2 ranks");
}

TEST_F(RunDiffTest, DigestsOfAnotherKindAreNotCompared) {
  RunToRecord older = run("b");
  older.digests = "";
  record(run("a"), 0, 3);
  record(older, 0, 3, {{1, 1, "compute/batch"}, {2, 0, "sync/bucket 0"}});
  const std::string told = "digests are of different kinds: only losses are compared\n";
  EXPECT_EQ(diff(), told + "equal: 3 steps, 6 digests of 2 ranks");
  older.nonce = "20260102T000000Z-00000000";
  record(older, 0, 3, {{1, 1, "compute/loss"}});
  EXPECT_EQ(diff(), told + "first difference: step 2, rank 1, compute: loss (2.5 against 0.25)");
}

TEST_F(RunDiffTest, TheFirstDifferenceIsNamedWithItsTensor) {
  record(run("a"), 0, 20);
  record(run("b"), 0, 20, {{12, 1, "compute/batch"}, {13, 0, "compute/batch"}});
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_FALSE(result.same);
  EXPECT_EQ(result.text,
            "first difference: step 13, rank 1, compute: batch, in target (digest 0x402b000000000000 against "
            "0x3fd0000000000000)");
}

TEST_F(RunDiffTest, OfAStepWhatComesFirstIsNamed) {
  record(run("a"), 0, 4);
  record(run("b"), 0, 4, {{2, 0, "sync/bucket 0"}, {2, 1, "compute/loss"}});
  EXPECT_EQ(diff(), "first difference: step 3, rank 1, compute: loss (3.5 against 0.25)");
}

TEST_F(RunDiffTest, TheLowestRankIsNamed) {
  record(run("a"), 0, 4);
  record(run("b"), 0, 4, {{2, 0, "sync/bucket 0"}, {2, 1, "sync/bucket 0"}});
  EXPECT_THAT(diff(), HasSubstr("step 3, rank 0, sync: bucket 0, in 0.bias"));
}

TEST_F(RunDiffTest, WeightsAreWhatTheStepsBeforeCameTo) {
  record(run("a"), 0, 4);
  record(run("b"), 0, 4, {{4, 1, "compute/weights"}});
  EXPECT_THAT(diff(), HasSubstr("step 4, rank 1, compute: weights, in 0.bias"));
}

TEST_F(RunDiffTest, InitialWeightsComeBeforeTheFirstStep) {
  record(run("a"), 0, 4);
  record(run("b"), 0, 4, {{0, 0, "compute/weights"}, {0, 0, "compute/batch"}});
  EXPECT_THAT(diff(), HasSubstr("before step 1, rank 0, compute: weights"));
}

TEST_F(RunDiffTest, AResumedRunIsComparedWithAWholeOne) {
  record(run("a"), 0, 6);
  record(run("b"), 4, 6);
  EXPECT_EQ(diff(), "equal: 2 steps, 14 digests of 2 ranks; " + folder_.path("a") + " has steps 1 to 6, " +
                        folder_.path("b") + " 5 to 6");
}

TEST_F(RunDiffTest, ADifferenceIsFoundInAResumedRun) {
  record(run("a"), 0, 6);
  record(run("b"), 4, 6, {{5, 1, "compute/loss"}});
  EXPECT_THAT(diff(), HasSubstr("step 6, rank 1, compute: loss"));
}

TEST_F(RunDiffTest, AStepDoneTwiceCountsByItsLast) {
  for (const char* name : {"a", "b"}) {
    const RunToRecord one = {.dir = folder_.path(name), .world = 1};
    const auto writer = one.rank(0);
    for (int attempt = 0; attempt < 2; ++attempt) {
      writer->digest("compute/batch", 3, 1);
      writer->digest("compute/loss", 3, name == std::string("a") && attempt == 0 ? 5 : 6);
    }
  }
  EXPECT_EQ(diff(), "equal: 1 step, 2 digests of 1 rank");
}

// Two steps and two evaluations after the second, of three batches each; `other` is the one that differs.
void record_evaluations(const RunToRecord& run, int other) {
  const auto writer = run.rank(0);
  writer->parts("compute/batch of eval", {"input", "target"});
  writer->parts("compute/metrics of eval", {"Accuracy", "CrossEntropy"});
  for (int64_t step = 0; step < 2; ++step) writer->digest("compute/loss", step, 5);
  int number = 0;
  const auto put = [&](const char* key) {
    const uint16_t value = ++number == other ? 99 : 7;
    writer->digest(key, 2, value, std::vector<uint16_t>{1, value});
  };
  for (int evaluation = 0; evaluation < 2; ++evaluation) {
    for (int batch = 0; batch < 3; ++batch) put("compute/batch of eval");
    put("compute/metrics of eval");
  }
}

TEST_F(RunDiffTest, EveryBatchOfAnEvaluationIsCompared) {
  const std::map<int, std::string> told = {{1, "batch of eval #1, in target"},
                                           {3, "batch of eval #3, in target"},
                                           {4, "metrics of eval #1, in CrossEntropy"},
                                           {6, "batch of eval #5, in target"},
                                           {8, "metrics of eval #2, in CrossEntropy"}};
  for (const char* name : {"a", "b"}) record_evaluations({.dir = folder_.path(name), .world = 1}, 0);
  EXPECT_EQ(diff(), "equal: 2 steps, 10 digests of 1 rank");
  for (const auto& [other, text] : told) {
    PosixDisk().remove_all(folder_.path("b"));
    record_evaluations({.dir = folder_.path("b"), .world = 1}, other);
    EXPECT_THAT(diff(), HasSubstr("first difference: step 2, rank 0, compute: " + text));
  }
}

// Steps 1 to `last` of a rank, which says how it ended, or does not.
void record_rank(const RunToRecord& run, int rank, int64_t last, bool ended) {
  const auto writer = run.rank(rank);
  for (int64_t step = 0; step < last; ++step) writer->digest("compute/loss", step, 5);
  if (ended) writer->end("exit code 0");
}

TEST_F(RunDiffTest, ARankWhoseRecordIsDamagedIsNamed) {
  for (const char* name : {"a", "b"})
    for (int rank : {0, 1}) record_rank(run(name), rank, 50, true);
  const std::string path = journal_path(recorded_start(folder_.path("b")), 1);
  std::string bytes = read_text(path);
  bytes[bytes.size() / 2] ^= 4;
  std::ofstream(path, std::ios::binary) << bytes;
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_FALSE(result.same);
  const std::regex told(
      "equal: (\\d+) steps, \\d+ digests of 2 ranks\n"
      "rank 1 of .*/b ends at step \\1 \\(damaged at byte \\d+\\), the run at step 50");
  EXPECT_TRUE(std::regex_match(result.text, told)) << result.text;
}

TEST_F(RunDiffTest, ARankWhoseRecordEndsBeforeTheOthersIsNamed) {
  record_rank(run("a"), 0, 9, true);
  record_rank(run("a"), 1, 2, false);
  for (int rank : {0, 1}) record_rank(run("b"), rank, 9, true);
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_FALSE(result.same);
  EXPECT_EQ(result.text, "equal: 2 steps, 11 digests of 2 ranks\nrank 1 of " + folder_.path("a") +
                             " ends at step 2, the run at step 9");
}

TEST_F(RunDiffTest, ALaterStartWithoutARecordIsNamed) {
  for (const char* name : {"a", "b"}) record(run(name), 0, 4);
  const std::string later = journal_folder(folder_.path("b"), "29991231T235959.999Z-00000000");
  PosixDisk().make_folders(later);
  write_text(journal_path(later, 0), "");
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, AllOf(StartsWith("equal: "), HasSubstr("\nignored: " + later + ": rank 0's")));
  EXPECT_THAT(diff_runs(folder_.path("a"), folder_.path("b"), 1, 1).text, Not(HasSubstr("ignored: ")));
}

TEST_F(RunDiffTest, AKilledRunIsEqualAsFarAsItWent) {
  record_rank(run("a"), 0, 4, false);
  record_rank(run("a"), 1, 3, false);
  for (int rank : {0, 1}) record_rank(run("b"), rank, 9, true);
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr("equal: 3 steps, 7 digests of 2 ranks; "));
}

TEST_F(RunDiffTest, ATornLastRecordOfAKilledRankIsNoDamage) {
  for (const char* name : {"a", "b"})
    for (int rank : {0, 1}) record_rank(run(name), rank, 4, false);
  const std::string path = journal_path(recorded_start(folder_.path("b")), 1);
  std::string bytes = read_text(path);
  bytes.back() = 0;
  std::ofstream(path, std::ios::binary) << bytes;
  const RunDiff result = diff_runs(folder_.path("a"), folder_.path("b"));
  EXPECT_TRUE(result.same) << result.text;
  EXPECT_THAT(result.text, HasSubstr("equal: 3 steps, 7 digests of 2 ranks"));
}

// A loss a pass, two passes a step; after `last` losses the rank ends, killed if `end` is "".
void record_passes(const RunToRecord& run, const std::vector<uint64_t>& losses, const std::string& end) {
  const auto writer = run.rank(0);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto step = static_cast<int64_t>(i / 2);
    if (i % 2 == 0) writer->digest("compute/batch", step, 3);
    writer->digest("compute/loss", step, losses[i]);
  }
  if (!end.empty()) writer->end(end);
}

TEST_F(RunDiffTest, AStepThatBreaksOffBetweenTwoPassesIsNoDifference) {
  const auto one = [this](const std::string& name) {
    return RunToRecord{.dir = folder_.path(name), .world = 1};
  };
  record_passes(one("whole"), {5, 6, 7, 8}, "exit code 0");
  record_passes(one("killed"), {5, 6, 7}, "");
  record_passes(one("failed"), {5, 6, 7}, "rank 1 is gone");
  record_passes(one("other"), {5, 6, 9}, "");
  record_passes(one("ended"), {5, 6, 7}, "exit code 0");
  const auto text = [this](const std::string& a, const std::string& b) {
    return diff_runs(folder_.path(a), folder_.path(b)).text;
  };
  EXPECT_EQ(text("killed", "whole"), "equal: 1 step, 3 digests of 1 rank");
  EXPECT_EQ(text("whole", "failed"), "equal: 1 step, 3 digests of 1 rank");
  EXPECT_EQ(text("killed", "failed"), "equal: 2 steps, 4 digests of 1 rank");
  EXPECT_THAT(text("killed", "other"), HasSubstr("first difference: step 2, rank 0, compute: loss"));
  EXPECT_THAT(text("ended", "whole"), HasSubstr("first difference: step 2, rank 0, compute: loss"));
}

TEST_F(RunDiffTest, AttemptsAreCountedInTheOrderOfTime) {
  RunToRecord newer = run("a");
  newer.nonce = "20260102T000000Z-00000000";
  record(run("a"), 0, 3);
  record(newer, 0, 3, {{1, 0, "compute/batch"}});
  const std::string dir = folder_.path("a");
  EXPECT_TRUE(diff_runs(dir, dir, 2).same);
  EXPECT_THAT(diff_runs(dir, dir, 1, 2).text, HasSubstr("first difference: step 2, rank 0, compute: batch"));
  try {
    diff_runs(dir, dir, 3);
    FAIL() << "not refused";
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(), dir + ": there is no attempt 3: it has journals of 2 attempts");
  }
}

TEST_F(RunDiffTest, BucketsCutOtherwiseAreNotCompared) {
  for (const char* name : {"a", "b"}) {
    const RunToRecord one = {.dir = folder_.path(name), .world = 1};
    const auto writer = one.rank(0);
    writer->parts("sync/bucket 0", {"weight", name});
    writer->digest("compute/loss", 0, 5);
    writer->digest("sync/bucket 0", 0, name[0], std::vector<uint16_t>{1, 2});
  }
  EXPECT_EQ(diff(), "equal: 1 step, 1 digest of 1 rank");
}

TEST_F(RunDiffTest, TheNewestAttemptIsCompared) {
  record(run("a"), 0, 3);
  record(run("b"), 0, 3, {{1, 0, "compute/batch"}});
  RunToRecord newer = run("b");
  newer.nonce = "20260102T000000Z-00000000";
  record(newer, 0, 3);
  EXPECT_THAT(diff(), HasSubstr("equal"));
}

TEST_F(RunDiffTest, AtMostFiveKeysOfTheRecipesAreNamed) {
  RunToRecord a = run("a"), b = run("b");
  a.recipe = "seed = 1\na = 1\nb = 1\nc = 1\nd = 1\n[optimizer]\nlr = 0.1\n";
  b.recipe = "seed = 1\na = 2\nb = 2\nc = 2\ne = 1\n[optimizer]\nlr = 0.2\n";
  record(a, 0, 2);
  record(b, 0, 2);
  EXPECT_EQ(diff(),
            "recipes differ: a (1 against 2), b (1 against 2), c (1 against 2), d (1 against nothing), "
            "optimizer.lr (0.1 against 0.2) and 1 more\nequal: 2 steps, 16 digests of 2 ranks");
}

TEST_F(RunDiffTest, RunsOnOtherNumbersOfRanksAreRefused) {
  record(run("a"), 0, 2);
  record({.dir = folder_.path("b"), .world = 1}, 0, 2);
  EXPECT_THAT(refused(), HasSubstr("the number of ranks must be equal"));
}

TEST_F(RunDiffTest, RunsWithoutDigestsAreRefused) {
  record(run("a"), 0, 2);
  RunToRecord b = run("b");
  b.level = JournalLevel::kControl;
  record(b, 0, 0);
  EXPECT_THAT(refused(), HasSubstr("recorded at journal.level = \"control\""));
}

TEST_F(RunDiffTest, RunsWithoutACommonStepAreRefused) {
  record(run("a"), 0, 2);
  record(run("b"), 5, 9);
  EXPECT_THAT(refused(), HasSubstr("a has steps 1 to 2, "));
}

TEST_F(RunDiffTest, ARunWithoutJournalIsRefused) {
  record(run("a"), 0, 2);
  EXPECT_THAT(refused(), HasSubstr("b: there is no such folder"));
  PosixDisk().make_folders(run("b").dir);
  EXPECT_THAT(refused(), HasSubstr("b: there is no journal in it"));
}

TEST_F(RunDiffTest, ARunThatLacksARanksJournalIsRefused) {
  record(run("a"), 0, 2);
  record(run("b"), 0, 2);
  PosixDisk().remove_all(journal_path(recorded_start(folder_.path("b")), 1));
  EXPECT_THAT(refused(), HasSubstr("rank-1.journal"));
}

}  // namespace
}  // namespace tutti
