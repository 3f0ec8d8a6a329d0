#include "analysis/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/messages/messages.h"
#include "io/journal/journal.h"
#include "runtime/error.h"
#include "tests/analysis/recorded_runs.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TimePoint at_us(int64_t us) { return TimePoint(std::chrono::microseconds(1'000'000 + us)); }

// An event of the trace as a line: "B compute BatchReady @12 from=loader".
class Lines {
 public:
  explicit Lines(const std::string& path) {
    const auto trace = nlohmann::json::parse(read_text(path));
    for (const auto& event : trace.at("traceEvents")) add(event);
  }
  std::vector<std::string> lines;

 private:
  void add(const nlohmann::json& event) {
    const std::string phase = event.at("ph"), tid = event.at("tid").dump();
    if (phase == "M") {
      if (event.at("name") == "thread_name") names_[tid] = event.at("args").at("name");
      return;
    }
    std::string line = phase + " " + (names_.contains(tid) ? names_[tid] : "-");
    if (event.contains("name")) line += " " + event.at("name").get<std::string>();
    char time[32];
    std::snprintf(time, sizeof time, " @%g", event.at("ts").get<double>());
    line += time;
    const auto args = event.value("args", nlohmann::json::object());
    for (const auto& [key, value] : args.items())
      line += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
    lines.push_back(line);
  }
  std::map<std::string, std::string> names_;
};

class TimelineTest : public testing::Test {
 protected:
  std::vector<std::string> timeline() {
    told_ = write_timeline(disk_, run_.dir, run_.dir + "/timeline.json");
    return Lines(run_.dir + "/timeline.json").lines;
  }
  static double us(Nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

  Scratch scratch_;
  PosixDisk disk_;
  RunToRecord run_{.dir = scratch_.path("run"), .world = 1};
  std::string told_;
};

TEST_F(TimelineTest, MessagesAreSlicesAndTheirEventsPartsOfThem) {
  {
    const auto writer = run_.rank(0);
    writer->delivery("compute", "", "Start", at_us(0));
    writer->event({at_us(1), "compute", "backward", 3, 0});
    writer->event({at_us(4), "compute", "bucket full", 3, 1});
    writer->event({at_us(5), "compute", "backward done", 3, 0});
    writer->delivery("compute", "", "Stop", at_us(9));
    writer->end("trained");
  }
  EXPECT_THAT(
      timeline(),
      ElementsAre("B compute start @0 from=outside message=Start",
                  "B compute backward @1 microbatch=1 step=4", "i compute bucket full @4 bucket=1 step=4",
                  "E compute @5", "B compute update @5 step=0", "E compute @5", "E compute @5",
                  "B compute end @9 from=outside message=Stop", "i - end: trained @9", "E compute @9"));
  EXPECT_THAT(told_, HasSubstr("/timeline.json: 1 rank, 2 messages; open it at "));
}

TEST_F(TimelineTest, AnArrowIsASignOfItsSender) {
  {
    const auto writer = run_.rank(0);
    writer->delivery("loader", "", "Start", at_us(0));
    writer->delivery("compute", "loader", "BatchReady", at_us(7));
    writer->delivery("loader", "", "Stop", at_us(9));
    writer->end("trained");
  }
  EXPECT_THAT(timeline(),
              ElementsAre("B loader start @0 from=outside message=Start", "s loader BatchReady @7",
                          "B compute prepare batch @7", "f compute BatchReady @7", "E loader @7",
                          "B loader end @9 from=outside message=Stop", "i - end: trained @9", "E compute @7",
                          "E loader @9"));
}

TEST_F(TimelineTest, WorkBeforeAnActorsFirstMessageIsASlice) {
  {
    const auto writer = run_.rank(0);
    writer->event({at_us(0), "sync", "looks", 0, 0});
    writer->delivery("supervisor", "sync", "Heard", at_us(2));
    writer->end("trained");
  }
  EXPECT_THAT(timeline(),
              ElementsAre("B sync starts @0", "B sync looks @0 detail=0 step=0", "s sync Heard @2",
                          "B supervisor Heard @2 from=sync message=Heard", "f supervisor Heard @2",
                          "i - end: trained @2", "E supervisor @2", "E sync @2", "E sync @2"));
}

TEST_F(TimelineTest, AMessageToOneselfComesFromTheSliceBefore) {
  {
    const auto writer = run_.rank(0);
    writer->delivery("sync", "", "Start", at_us(0));
    writer->delivery("sync", "sync", "Look", at_us(2));
    writer->end("trained");
  }
  EXPECT_THAT(timeline(), ElementsAre("B sync start @0 from=outside message=Start", "s sync Look @2",
                                      "E sync @2", "B sync Look @2 from=sync message=Look", "f sync Look @2",
                                      "i - end: trained @2", "E sync @2"));
}

TEST_F(TimelineTest, AControlPacketIsAnArrowFromOneSyncToAnother) {
  run_.world = 2;
  {
    const auto first = run_.rank(0), other = run_.rank(1);
    other->delivery("sync", "supervisor", "SendControl", at_us(0));
    other->event({at_us(1), "sync", name(TraceKind::kControlSent), 3, 0});
    first->event({at_us(4), "sync", name(TraceKind::kControlReceived), 3, 1});
    first->delivery("supervisor", "sync", "ControlReceived", at_us(5));
  }
  EXPECT_THAT(
      timeline(),
      ElementsAre("B sync starts @4", "B sync control from rank 1 @4 rank=1 step=4", "f sync control @4",
                  "s sync ControlReceived @5", "B supervisor control @5 from=sync message=ControlReceived",
                  "f supervisor ControlReceived @5", "E supervisor @5", "E sync @5", "E sync @5",
                  "i - end of the journal: killed, or still running @5", "B supervisor starts @0",
                  "s supervisor SendControl @0", "B sync control @0 from=supervisor message=SendControl",
                  "f sync SendControl @0", "B sync control to rank 0 @1 rank=0 step=4", "s sync control @1",
                  "E supervisor @0", "E sync @1", "E sync @1",
                  "i - end of the journal: killed, or still running @1"));
}

TEST_F(TimelineTest, TimeDoesNotRunBackwardsWhereThreadsWroteOutOfOrder) {
  {
    const auto writer = run_.rank(0);
    writer->delivery("loader", "", "Start", at_us(5));
    writer->event({at_us(8), "loader", "batch ready", 0, 0});
    writer->delivery("compute", "loader", "BatchReady", at_us(7));
    writer->end("trained");
  }
  EXPECT_THAT(timeline(), testing::Contains("f compute BatchReady @3"));
}

TEST_F(TimelineTest, AKilledRunEndsWhereItsJournalEnds) {
  run_.rank(0)->delivery("loader", "", "Start", at_us(5));
  EXPECT_THAT(timeline(), ElementsAre("B loader start @0 from=outside message=Start", "E loader @0",
                                      "i - end of the journal: killed, or still running @0"));
}

TEST_F(TimelineTest, ALiveRunIsDrawnAsFarAsItIs) {
  const auto writer = run_.rank(0);
  writer->delivery("loader", "", "Start", at_us(5));
  EXPECT_EQ(timeline().size(), 3u);
  writer->delivery("loader", "", "Stop", at_us(6));
  EXPECT_EQ(timeline().size(), 5u);
}

TEST_F(TimelineTest, AnyTextIsValidJson) {
  {
    const auto writer = run_.rank(0);
    writer->delivery("loader", "", "\"", at_us(0));
    writer->delivery("loader", "", "\\", at_us(0));
    writer->end("a\n\xff");
  }
  EXPECT_THAT(timeline(), ElementsAre("B loader \" @0 from=outside message=\"", "E loader @0",
                                      "B loader \\ @0 from=outside message=\\", "i - end: a\n\xEF\xBF\xBD @0",
                                      "E loader @0"));
}

TEST_F(TimelineTest, ATraceThatCannotBeWrittenIsTheUsersError) {
  run_.rank(0)->end("trained");
  const std::string out = scratch_.path("nowhere/timeline.json");
  EXPECT_THAT(message_of<UserError>([&] { write_timeline(disk_, run_.dir, out); }), HasSubstr(out));
}

TEST_F(TimelineTest, ALaterStartWithoutARecordIsSaid) {
  run_.rank(0)->delivery("compute", "", "Start", TimePoint());
  const std::string later = journal_folder(run_.dir, "29991231T235959.999Z-00000000");
  disk_.make_folders(later);
  write_text(journal_path(later, 0), "");
  timeline();
  EXPECT_THAT(told_, HasSubstr("\nignored: " + later + ": rank 0's"));
}

// Of two ranks that enter and leave meetings at these times, each by its own clock, in microseconds.
class AlignmentTest : public TimelineTest {
 protected:
  AlignmentTest() { run_.world = 2; }

  void step(JournalWriter& writer, int64_t entered, int64_t left) {
    writer.delivery("sync", "compute", kStepEnd.entered, at_us(entered));
    writer.event({at_us(left), "sync", kStepEnd.left, 0, 0});
  }
  double shift() const { return us(align_clocks(recorded_run(run_.dir)).at(1)); }
};

TEST_F(AlignmentTest, ClocksThatFitStayAsTheyAre) {
  step(*run_.rank(0), 10, 20);
  step(*run_.rank(1), 19, 29);
  EXPECT_EQ(shift(), 0);
}

TEST_F(AlignmentTest, AnotherClockIsShiftedToWhereAllMeetingsFit) {
  const auto first = run_.rank(0), other = run_.rank(1);
  step(*first, 10, 20);
  step(*first, 40, 50);
  step(*other, 1012, 1020);  // the shift is within [10 - 1020, 20 - 1012]
  step(*other, 1036, 1044);  // and within [40 - 1044, 50 - 1036]
  EXPECT_EQ(shift(), (-1004 + -992) / 2.0);
}

TEST_F(AlignmentTest, AgreementsAreMeetingsToo) {
  const auto meet = [](JournalWriter& writer, int64_t entered, int64_t left) {
    writer.delivery("sync", "supervisor", kAgreement.entered, at_us(entered));
    writer.delivery("supervisor", "sync", kAgreement.left, at_us(left));
  };
  meet(*run_.rank(0), 10, 20);
  meet(*run_.rank(1), 110, 120);
  EXPECT_EQ(shift(), -100);
}

TEST_F(AlignmentTest, WithoutMeetingsClocksOfOneHostAreOneClock) {
  run_.unix_ms = {1000, 5000};
  run_.rank(0)->delivery("loader", "", "Start", at_us(0));
  run_.rank(1)->delivery("loader", "", "Start", at_us(9));
  EXPECT_EQ(shift(), 0);
}

TEST_F(AlignmentTest, WithoutMeetingsClocksOfOtherHostsGoByTheWall) {
  run_.hosts = {"one", "other"};
  run_.unix_ms = {1000, 1003};
  run_.rank(0)->delivery("loader", "", "Start", at_us(0));
  run_.rank(1)->delivery("loader", "", "Start", at_us(9));
  EXPECT_EQ(shift(), 3000 - 9);
}

TEST_F(AlignmentTest, TheTraceHasTheTimeOfRank0) {
  step(*run_.rank(0), 10, 20);
  step(*run_.rank(1), 110, 120);
  const auto lines = timeline();
  EXPECT_EQ(std::ranges::count(lines, "f sync FinishStep @0"), 2);
  EXPECT_EQ(std::ranges::count(lines, "B sync all-reduce, verdict @0 step=1"), 2);
}

TEST_F(AlignmentTest, MeetingsAreThoseOfTheActors) {
  EXPECT_STREQ(kAgreement.entered, Agree::kName);
  EXPECT_STREQ(kAgreement.left, Agreed::kName);
  EXPECT_STREQ(kStepEnd.entered, FinishStep::kName);
}

}  // namespace
}  // namespace tutti
