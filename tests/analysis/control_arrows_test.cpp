#include "analysis/control_arrows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/timeline.h"
#include "io/journal/journal.h"
#include "tests/analysis/recorded_runs.h"
#include "tests/analysis/trace_arrows.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TimePoint clock_at(int64_t us) { return TimePoint(std::chrono::microseconds(1'000'000 + us)); }
const char* const kSent = name(TraceKind::kControlSent);
const char* const kReceived = name(TraceKind::kControlReceived);

JournalEvent sent(int to, int64_t us) { return {clock_at(us), "sync", kSent, 7, to}; }
JournalEvent received(int from, int64_t us) { return {clock_at(us), "sync", kReceived, 8, from}; }

class ControlArrowsTest : public testing::Test {
 protected:
  // A rank of which this happened, the first time that anything did at 0.
  void record(int rank, const std::vector<JournalEvent>& events) const {
    const auto writer = run_.rank(rank);
    writer->delivery("loader", "", "Start", clock_at(0));
    for (const JournalEvent& one : events) writer->event(one);
  }
  // Takes the last byte of a rank's journal, and so its last record.
  void tear(int rank) const {
    const std::string path = journal_path(journal_folder(run_.dir, run_.nonce), rank);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  }
  std::vector<TraceArrow> arrows(int64_t start = 0) {
    write_timeline(disk_, run_.dir, run_.dir + "/timeline.json", start);
    return TraceArrows(run_.dir + "/timeline.json").between_ranks;
  }
  std::vector<std::string> texts(int64_t start = 0) {
    std::vector<std::string> lines;
    for (const TraceArrow& arrow : arrows(start)) lines.push_back(arrow.text());
    return lines;
  }

  Scratch scratch_;
  PosixDisk disk_;
  RunToRecord run_{.dir = scratch_.path("run")};
};

TEST_F(ControlArrowsTest, JoinWhatWasSentAndReceivedWhateverTheOrderOfSenders) {
  run_.world = 3;
  run_.hosts = {"one", "one", "one"};
  run_.unix_ms = {0, 0, 0};
  record(0, {received(2, 5), received(1, 6), received(2, 7), received(1, 8), sent(2, 9), sent(1, 10)});
  record(1, {sent(0, 1), sent(0, 4), received(0, 11), sent(2, 13)});
  record(2, {sent(0, 2), sent(0, 3), received(0, 12), received(1, 14)});
  EXPECT_THAT(texts(),
              UnorderedElementsAre(
                  "sync of rank 2 @2 -> sync of rank 0 @5", "sync of rank 1 @1 -> sync of rank 0 @6",
                  "sync of rank 2 @3 -> sync of rank 0 @7", "sync of rank 1 @4 -> sync of rank 0 @8",
                  "sync of rank 0 @9 -> sync of rank 2 @12", "sync of rank 0 @10 -> sync of rank 1 @11",
                  "sync of rank 1 @13 -> sync of rank 2 @14"));
  for (const TraceArrow& arrow : arrows()) {
    EXPECT_EQ(arrow.from.slice, "control to rank " + std::to_string(arrow.to.rank));
    EXPECT_EQ(arrow.to.slice, "control from rank " + std::to_string(arrow.from.rank));
  }
}

TEST_F(ControlArrowsTest, AreNoneWhereTheReceiptIsTornAway) {
  record(0, {received(1, 3), received(1, 6)});
  record(1, {sent(0, 1), sent(0, 5)});
  ASSERT_EQ(texts().size(), 2u);
  tear(0);
  EXPECT_THAT(texts(), ElementsAre("sync of rank 1 @1 -> sync of rank 0 @3"));
}

TEST_F(ControlArrowsTest, AreNoneWhereTheSendingIsTornAway) {
  record(0, {received(1, 3), received(1, 6)});
  record(1, {sent(0, 1), sent(0, 5)});
  tear(1);
  EXPECT_THAT(texts(), ElementsAre("sync of rank 1 @1 -> sync of rank 0 @3"));
}

TEST_F(ControlArrowsTest, StayWithinAnAttempt) {
  record(0, {received(1, 3)});
  record(1, {sent(0, 1), sent(0, 2)});
  run_.nonce = "20260102T000000Z-00000000";
  record(0, {received(1, 12)});
  record(1, {sent(0, 11)});
  EXPECT_THAT(texts(1), ElementsAre("sync of rank 1 @1 -> sync of rank 0 @3"));
  EXPECT_THAT(texts(2), ElementsAre("sync of rank 1 @11 -> sync of rank 0 @12"));
}

TEST_F(ControlArrowsTest, GiveTheTimeOfRank0) {
  const auto step = [](JournalWriter& writer, int64_t entered, int64_t left) {
    writer.delivery("sync", "compute", kStepEnd.entered, clock_at(entered));
    writer.event({clock_at(left), "sync", kStepEnd.left, 0, 0});
  };
  const auto first = run_.rank(0), other = run_.rank(1);
  step(*first, 10, 20);
  step(*other, 1010, 1020);
  first->event(received(1, 70));
  other->event(sent(0, 1060));
  EXPECT_THAT(texts(), ElementsAre("sync of rank 1 @50 -> sync of rank 0 @60"));
}

// Of two hosts whose clocks have drifted apart.
TEST_F(ControlArrowsTest, DoNotArriveBeforeTheyLeft) {
  record(0, {received(1, 5), {clock_at(6), "sync", "verdict", 8, 0}});
  record(1, {sent(0, 9)});
  EXPECT_THAT(texts(), ElementsAre("sync of rank 1 @9 -> sync of rank 0 @9.001"));
}

TEST_F(ControlArrowsTest, AreNoneWhereNothingOfTheKindIsRecorded) {
  run_.rank(0)->delivery("supervisor", "sync", "ControlReceived from rank 1", clock_at(4));
  run_.rank(1)->delivery("sync", "supervisor", "SendControl", clock_at(1));
  EXPECT_THAT(texts(), IsEmpty());
}

TEST_F(ControlArrowsTest, AreNoneOfWhatIsWrittenMeanwhile) {
  record(0, {received(1, 3)});
  record(1, {sent(0, 1)});
  ControlArrows arrows(recorded_run(run_.dir), {clock_at(0), clock_at(0)});
  const auto leaves = arrows.next(1, sent(0, 1)), arrives = arrows.next(0, received(1, 3));
  ASSERT_TRUE(leaves && arrives);
  EXPECT_TRUE(leaves->leaves && !arrives->leaves);
  EXPECT_EQ(leaves->arrow, arrives->arrow);
  EXPECT_FALSE(arrows.next(1, sent(0, 4)));
  EXPECT_FALSE(arrows.next(0, received(1, 5)));
  EXPECT_FALSE(arrows.next(0, sent(1, 6))) << "the first on this way";
}

}  // namespace
}  // namespace tutti
