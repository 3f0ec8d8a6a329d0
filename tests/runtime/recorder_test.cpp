#include "runtime/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti {
namespace {

TraceEvent event(int64_t step) { return {TimePoint{}, TraceKind::kBatch, step, 2 * step}; }

std::vector<int64_t> steps(const std::vector<TraceEvent>& events) {
  std::vector<int64_t> out;
  for (const TraceEvent& event : events) out.push_back(event.step);
  return out;
}

TEST(RecorderTest, KeepsTheLastOldestFirst) {
  RingRecorder recorder(4);
  EXPECT_TRUE(recorder.last(10).empty());
  for (int step = 0; step < 3; ++step) recorder.record(event(step));
  EXPECT_EQ(steps(recorder.last(10)), (std::vector<int64_t>{0, 1, 2}));
  for (int step = 3; step < 10; ++step) recorder.record(event(step));
  EXPECT_EQ(steps(recorder.last(10)), (std::vector<int64_t>{6, 7, 8, 9}));
  EXPECT_EQ(steps(recorder.last(2)), (std::vector<int64_t>{8, 9}));
  EXPECT_TRUE(recorder.last(0).empty());
}

TEST(RecorderTest, KeepsEveryField) {
  RingRecorder recorder;
  recorder.record({TimePoint(Nanoseconds(5)), TraceKind::kReduceBucket, 7, 4096});
  const TraceEvent kept = recorder.last(1).at(0);
  EXPECT_EQ(kept.time, TimePoint(Nanoseconds(5)));
  EXPECT_EQ(kept.kind, TraceKind::kReduceBucket);
  EXPECT_EQ(kept.step, 7);
  EXPECT_EQ(kept.detail, 4096);
}

// The enum and the texts are two lists; journals of other builds are read by the texts.
TEST(TraceEventTest, EachKindHasItsActorAndName) {
  const auto text = [](TraceKind kind) { return name(actor_of(kind)) + std::string(" ") + name(kind); };
  EXPECT_EQ(text(TraceKind::kVerifies), "compute verifies a checkpoint");
  EXPECT_EQ(text(TraceKind::kPrepares), "compute prepares model and checkpoint");
  EXPECT_EQ(text(TraceKind::kBackwardDone), "compute backward done");
  EXPECT_EQ(text(TraceKind::kOutOfMemory), "compute out of memory at allocation");
  EXPECT_EQ(text(TraceKind::kCommitted), "compute committed");
  EXPECT_EQ(text(TraceKind::kListenerAtWork), "compute a listener is at work");
  EXPECT_EQ(text(TraceKind::kDone), "compute done");
  EXPECT_EQ(text(TraceKind::kBatchReady), "loader batch ready");
  EXPECT_EQ(text(TraceKind::kVerdict), "sync verdict");
  EXPECT_EQ(text(TraceKind::kControlReceived), "sync control received");
  EXPECT_EQ(text(TraceKind::kDurable), "checkpointer durable");
  EXPECT_EQ(text(TraceKind::kCheckpointFailed), "supervisor checkpoint failed");
}

TEST(RecordedInputTest, EveryInputHasItsName) {
  EXPECT_STREQ(name(RecordedInput::kCheckpoint), "checkpoint");
  EXPECT_STREQ(name(RecordedInput::kTrainingSeconds), "seconds");
  EXPECT_STREQ(name(RecordedInput::kFailedAllocation), "failed allocation");
  EXPECT_STREQ(name(RecordedInput::kRankFileError), "disk");
  EXPECT_STREQ(name(RecordedInput::kPublishError), "publish");
  EXPECT_STREQ(name(RecordedInput::kVerification), "verification");
}

TEST(RecorderTest, EventsAreWholeUnderContention) {
  RingRecorder recorder(64);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&recorder] {
      for (int step = 0; step < 10'000; ++step) recorder.record(event(step));
    });
  }
  for (int look = 0; look < 100; ++look) {
    for (const TraceEvent& seen : recorder.last(64)) ASSERT_EQ(seen.detail, 2 * seen.step);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(recorder.last(1000).size(), 64u);
}

}  // namespace
}  // namespace tutti
