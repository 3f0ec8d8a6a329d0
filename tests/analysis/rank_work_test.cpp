#include "analysis/rank_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/messages/messages.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TimePoint micros(int64_t us) { return TimePoint(std::chrono::microseconds(us)); }

// Slices as lines, "compute: forward 3-7 step=2 microbatch=1", in the order of their ends.
class Slices final : public WorkSink {
 public:
  void add_track(int track, std::string_view name) override { names_[track] = name; }
  void begin(int track, Activity, std::string_view name, Nanoseconds time, const Args& args) override {
    std::string text;
    for (const auto& [key, value] : args)
      if (const auto* number = std::get_if<int64_t>(&value))
        text += " " + std::string(key) + "=" + std::to_string(*number);
    open_[track].push_back({std::string(name), us(time), text});
  }
  void end(int track, Nanoseconds time) override {
    const Open one = open_[track].back();
    open_[track].pop_back();
    of(track).push_back(one.name + " " + one.begin + "-" + us(time) + one.args);
  }
  void mark(int track, std::string_view name, Nanoseconds time, const Args&) override {
    of(track).push_back(std::string(name) + " @" + us(time));
  }
  void step_done(int64_t step, Nanoseconds time) override {
    lines["done"].push_back(std::to_string(step) + " @" + us(time));
  }

  std::map<std::string, std::vector<std::string>> lines;  // by track

 private:
  struct Open {
    std::string name, begin, args;
  };
  static std::string us(Nanoseconds time) { return std::to_string(time.count() / 1000); }
  std::vector<std::string>& of(int track) { return lines[names_[track]]; }

  std::map<int, std::string> names_;
  std::map<int, std::vector<Open>> open_;
};

class RankWorkTest : public testing::Test {
 protected:
  void deliver(const char* to, const char* from, const char* message, int64_t us) {
    const JournalDelivery delivery{to, from, message, micros(us)};
    work_.read(delivery);
    timed_.read(delivery);
  }
  void happen(TraceKind kind, int64_t us, int64_t step, int64_t detail = 0) {
    const JournalEvent event{micros(us), name(actor_of(kind)), name(kind), step, detail};
    work_.read(event);
    timed_.read(event);
  }
  std::map<std::string, std::vector<std::string>> finish() {
    work_.finish();
    timed_.finish();
    return slices_.lines;
  }
  // A step of a rank with another: forward 10 us, backward 10, wait 10, update 10, callbacks 5.
  void step(int64_t number, int64_t from) {
    deliver("compute", "loader", BatchReady::kName, from);
    happen(TraceKind::kBatch, from, number);
    happen(TraceKind::kMicrobatch, from + 1, number);
    happen(TraceKind::kBackward, from + 11, number);
    happen(TraceKind::kBackwardDone, from + 21, number);
    deliver("sync", "compute", FinishStep::kName, from + 22);
    happen(TraceKind::kVerdict, from + 31, number);
    happen(TraceKind::kCommitted, from + 41, number);
    happen(TraceKind::kStepDone, from + 46, number + 1);
  }
  double seconds(Activity work) const { return timer_.times().compute[static_cast<std::size_t>(work)]; }

  Slices slices_;
  WorkTimer timer_;
  RankWork work_{slices_, 2, TimePoint()};
  RankWork timed_{timer_, 2, TimePoint()};
};

TEST_F(RankWorkTest, AStepIsNamedByItsWork) {
  deliver("compute", "", Start::kName, 0);
  happen(TraceKind::kBegins, 0, 0);
  happen(TraceKind::kBatchReady, 1, 0, 0);
  deliver("supervisor", "compute", "Hello", 2);
  step(0, 10);
  const auto lines = finish();
  EXPECT_THAT(
      lines.at("compute"),
      ElementsAre("set-up 0-10 step=0", "start 0-10", "prepare batch 10-11",
                  "forward 11-21 step=1 microbatch=1", "backward 21-31 step=1 microbatch=1",
                  "wait for all-reduce 31-41 step=1", "update 41-51 step=1", "end of step 51-56 step=1"));
  EXPECT_THAT(lines.at("steps"), ElementsAre("step 1 10-56"));
  EXPECT_THAT(lines.at("done"), ElementsAre("1 @51"));
  EXPECT_THAT(lines.at("sync"), ElementsAre("all-reduce, verdict 32-41 step=1", "end of pass 32-41"));
  EXPECT_THAT(lines.at("loader"), ElementsAre("load a batch 1-1 epoch=1 batch=1", "starts 1-10"));
}

TEST_F(RankWorkTest, ComputeWaitsForABatchThatWasNotReady) {
  step(0, 10);
  happen(TraceKind::kBatchReady, 90, 0, 1);
  happen(TraceKind::kBatchReady, 91, 0, 2);
  step(1, 100);
  step(2, 200);
  const auto lines = finish();
  EXPECT_THAT(lines.at("compute"), Contains("wait for data 56-100"));
  EXPECT_THAT(lines.at("compute"), Contains("end of step 141-200 step=2")) << "the third batch was ready";
  EXPECT_THAT(lines.at("steps"), ElementsAre("step 1 10-56", "step 2 56-200", "step 3 200-246"));
  EXPECT_DOUBLE_EQ(seconds(Activity::kWaitForData), 44e-6);
}

TEST_F(RankWorkTest, TimesAddUpToThoseOfCompute) {
  step(0, 10);
  happen(TraceKind::kBatchReady, 70, 0, 1);
  step(1, 100);
  finish();
  EXPECT_DOUBLE_EQ(seconds(Activity::kForward), 20e-6);
  EXPECT_DOUBLE_EQ(seconds(Activity::kWaitForSums), 20e-6);
  EXPECT_DOUBLE_EQ(seconds(Activity::kUpdate), 20e-6);
  EXPECT_DOUBLE_EQ(timer_.times().beside[static_cast<std::size_t>(Activity::kCollective)], 18e-6);
  double sum = 0;
  for (const double one : timer_.times().compute) sum += one;
  EXPECT_DOUBLE_EQ(sum, 136e-6);
}

TEST_F(RankWorkTest, AnEvaluationIsASliceOfTheSteps) {
  step(0, 10);
  happen(TraceKind::kEvaluation, 60, 1, 0);
  happen(TraceKind::kEvaluation, 70, 1, 1);
  happen(TraceKind::kStepDone, 80, 1);
  happen(TraceKind::kBatchReady, 75, 0, 1);
  step(1, 90);
  const auto lines = finish();
  EXPECT_THAT(lines.at("steps"),
              ElementsAre("step 1 10-60", "evaluation after step 1 60-90", "step 2 90-136"));
  EXPECT_THAT(lines.at("compute"), Contains("evaluation 70-90 step=1 batch=2"));
}

TEST_F(RankWorkTest, ABatchAfterTheEndIsNoStep) {
  step(0, 10);
  happen(TraceKind::kDone, 60, 1);
  deliver("compute", "loader", BatchReady::kName, 70);
  const auto lines = finish();
  EXPECT_THAT(lines.at("steps"), ElementsAre("step 1 10-60"));
  EXPECT_THAT(lines.at("compute"), Contains("left batch 70-70"));
}

TEST_F(RankWorkTest, ASingleRankUpdatesAfterBackward) {
  RankWork alone(slices_, 1, TimePoint());
  alone.read(JournalEvent{micros(5), "compute", name(TraceKind::kBackwardDone), 0, 0});
  alone.read(JournalEvent{micros(9), "compute", name(TraceKind::kCommitted), 0, 0});
  alone.finish();
  EXPECT_THAT(slices_.lines.at("compute"), Contains("update 5-9 step=0"));
  EXPECT_THAT(slices_.lines.at("compute"), Not(Contains(testing::StartsWith("wait"))));
}

TEST_F(RankWorkTest, AGatherIsWaitedForWhileItIsUnderWay) {
  happen(TraceKind::kMicrobatch, 0, 0);
  happen(TraceKind::kGather, 1, 0, 1);
  deliver("sync", "compute", AwaitEntry::kName, 2);
  happen(TraceKind::kGathered, 6, 0, 1);
  deliver("sync", "compute", AwaitEntry::kName, 7);
  happen(TraceKind::kBackward, 9, 0);
  const auto lines = finish();
  EXPECT_THAT(lines.at("compute"),
              ElementsAre("forward 0-2 step=1 microbatch=1", "wait for gather 2-6 step=0",
                          "forward 6-9 step=0", "backward 9-9 step=1 microbatch=1", "starts 0-9"));
  EXPECT_THAT(lines.at("sync"), Contains("gather of unit 1 1-2 step=1 unit=1"));
}

TEST_F(RankWorkTest, OutOfMemoryIsAMarkAndThenAVote) {
  step(0, 10);
  happen(TraceKind::kBatchReady, 50, 0, 1);
  deliver("compute", "loader", BatchReady::kName, 60);
  happen(TraceKind::kBatch, 60, 1);
  happen(TraceKind::kMicrobatch, 61, 1);
  happen(TraceKind::kOutOfMemory, 70, 1, 12);
  happen(TraceKind::kVerdict, 80, 1);
  happen(TraceKind::kAbortedAttempt, 80, 1, 1);
  happen(TraceKind::kMicrobatch, 85, 1);
  const auto lines = finish();
  for (const char* line : {"out of memory @70", "wait for all-reduce 70-80 step=2",
                           "retry in smaller parts 80-85 step=2 microbatches=1"})
    EXPECT_THAT(lines.at("compute"), Contains(line));
}

TEST_F(RankWorkTest, AnAllReduceLastsUntilSyncsNextRecord) {
  deliver("sync", "compute", RunEntry::kName, 1);
  happen(TraceKind::kReduceBucket, 2, 4, 3);
  deliver("sync", "compute", FinishStep::kName, 9);
  EXPECT_THAT(finish().at("sync"), ElementsAre("all-reduce of bucket 3 2-9 step=5 bucket=3",
                                               "collectives 1-9", "end of pass 9-9"));
}

TEST_F(RankWorkTest, AnAllReduceUnderWayLastsUntilTheVerdict) {
  deliver("sync", "compute", FinishStep::kName, 1);
  happen(TraceKind::kReduceBucket, 2, 4, 0);
  happen(TraceKind::kVerdict, 9, 4);
  EXPECT_THAT(finish().at("sync"),
              ElementsAre("all-reduce of bucket 0 2-9 step=5 bucket=0", "end of pass 1-9"));
}

TEST_F(RankWorkTest, AnUnknownEventKeepsItsName) {
  work_.read(JournalEvent{micros(3), "compute", "thinks", 4, 5});
  EXPECT_THAT(finish().at("compute"), Contains("thinks 3-3 step=4 detail=5"));
}

TEST_F(RankWorkTest, MessagesThatMeanSomethingAreThoseOfTheActors) {
  EXPECT_STREQ(BatchReady::kName, "BatchReady");
  EXPECT_STREQ(AwaitEntry::kName, "AwaitEntry");
  for (const char* message :
       {Join::kName, Verify::kName, Prepare::kName, Start::kName, Stop::kName, StopRequested::kName,
        Credit::kName, LoadBatch::kName, AddTransforms::kName, ReserveCopies::kName, Snapshot::kName,
        Concluded::kName, Durable::kName, Verified::kName, Prepared::kName, Agreed::kName,
        TrainingDone::kName, ControlReceived::kName})
    EXPECT_NE(work_of_message("compute", message).name, message);
  for (const char* message : {RunEntry::kName, AwaitEntry::kName, FinishStep::kName, SumDoubles::kName,
                              SetPlan::kName, AllocateMemory::kName, Agree::kName, SendControl::kName})
    EXPECT_NE(work_of_message("sync", message).name, message);
}

}  // namespace
}  // namespace tutti
