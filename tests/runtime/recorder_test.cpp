#include "runtime/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti {
namespace {

Happening happening(int64_t step) { return {TimePoint{}, "compute", "forward", step, 2 * step}; }

std::vector<int64_t> steps(const std::vector<Happening>& happenings) {
  std::vector<int64_t> out;
  for (const Happening& happening : happenings) out.push_back(happening.step);
  return out;
}

TEST(RecorderTest, KeepsTheLastOldestFirst) {
  RingRecorder recorder(4);
  EXPECT_TRUE(recorder.last(10).empty());
  for (int step = 0; step < 3; ++step) recorder.record(happening(step));
  EXPECT_EQ(steps(recorder.last(10)), (std::vector<int64_t>{0, 1, 2}));
  for (int step = 3; step < 10; ++step) recorder.record(happening(step));
  EXPECT_EQ(steps(recorder.last(10)), (std::vector<int64_t>{6, 7, 8, 9}));
  EXPECT_EQ(steps(recorder.last(2)), (std::vector<int64_t>{8, 9}));
  EXPECT_TRUE(recorder.last(0).empty());
}

TEST(RecorderTest, KeepsEveryField) {
  RingRecorder recorder;
  recorder.record({TimePoint(Nanoseconds(5)), "sync", "all_reduce", 7, 4096});
  const Happening kept = recorder.last(1).at(0);
  EXPECT_EQ(kept.time, TimePoint(Nanoseconds(5)));
  EXPECT_EQ(kept.actor, "sync");
  EXPECT_EQ(kept.what, "all_reduce");
  EXPECT_EQ(kept.step, 7);
  EXPECT_EQ(kept.detail, 4096);
}

TEST(RecorderTest, HappeningsAreWholeUnderContention) {
  RingRecorder recorder(64);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&recorder] {
      for (int step = 0; step < 10'000; ++step) recorder.record(happening(step));
    });
  }
  for (int look = 0; look < 100; ++look) {
    for (const Happening& seen : recorder.last(64)) ASSERT_EQ(seen.detail, 2 * seen.step);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(recorder.last(1000).size(), 64u);
}

}  // namespace
}  // namespace tutti
