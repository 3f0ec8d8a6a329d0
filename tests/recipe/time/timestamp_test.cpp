#include "recipe/time/timestamp.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Timestamp, EndsWhenTheMaximumIsReached) {
  const Timestamp now{.epoch = 2, .batch = 9};
  EXPECT_TRUE(reached(now, Time::parse("2ep")));
  EXPECT_FALSE(reached(now, Time::parse("10ba")));
  EXPECT_THROW(reached(now, Time::parse("1dur")), UserError);
}

// The batches of a run of `epochs` epochs of 10 batches of 8 samples after which the interval fires.
std::vector<int64_t> batches_fired(const char* every, const char* max_duration, int epochs = 4) {
  const Interval interval(Time::parse(every), Time::parse(max_duration), 10);
  std::vector<int64_t> fired;
  Timestamp now;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int batch = 0; batch < 10; ++batch) {
      const Timestamp before = now;
      now.to_next_batch(8, 0, 0.75);
      if (interval.at_batch_end(before, now)) fired.push_back(now.batch);
    }
    const Timestamp before = now;
    now.to_next_epoch();
    if (interval.at_epoch_end(before, now)) fired.push_back(now.batch);
  }
  return fired;
}

TEST(Timestamp, WallClocksSumUpWithoutDrift) {
  Timestamp now;
  for (int i = 0; i < 1000; ++i) now.to_next_batch(1, 1, 0.1 + 1e-9);
  EXPECT_EQ(now.batch_wct, 0.1);
  EXPECT_EQ(now.epoch_wct, 100.0);
  EXPECT_EQ(now.iteration_wct, 100.0);
  EXPECT_EQ(now.total_wct, 100.0);
}

TEST(Interval, OfEpochsFiresAtEpochEnds) {
  EXPECT_EQ(batches_fired("1ep", "4ep"), (std::vector<int64_t>{10, 20, 30, 40}));
  EXPECT_EQ(batches_fired("2ep", "4ep"), (std::vector<int64_t>{20, 40}));
}

TEST(Interval, OfBatchesFiresAtTheirMultiples) {
  EXPECT_EQ(batches_fired("13ba", "4ep"), (std::vector<int64_t>{13, 26, 39}));
}

TEST(Interval, OfSamplesFiresWithTheBatchThatPassesAMultiple) {
  EXPECT_EQ(batches_fired("100sp", "4ep"), (std::vector<int64_t>{13, 25, 38}));
}

TEST(Interval, OfSecondsFollowsTheWallClock) {
  EXPECT_EQ(batches_fired("10sec", "4ep"), (std::vector<int64_t>{14, 27, 40}));
}

TEST(Interval, FractionOfATrainingInEpochsFiresAfterBatches) {
  EXPECT_EQ(batches_fired("0.5dur", "4ep"), (std::vector<int64_t>{20, 40}));
  EXPECT_EQ(batches_fired("0.125dur", "4ep"), (std::vector<int64_t>{5, 10, 15, 20, 25, 30, 35, 40}));
  EXPECT_EQ(batches_fired("0.3dur", "2ep", 2), (std::vector<int64_t>{6, 12, 18}));
}

TEST(Interval, FractionOfATrainingInOtherUnitsIsRoundedUp) {
  EXPECT_EQ(batches_fired("0.3dur", "40ba"), (std::vector<int64_t>{12, 24, 36}));
  EXPECT_EQ(batches_fired("0.15dur", "10ba", 1), (std::vector<int64_t>{2, 4, 6, 8, 10}));
  EXPECT_EQ(batches_fired("0.15dur", "330sp"), batches_fired("50sp", "330sp"));
}

TEST(Interval, OfNothingNeverFires) {
  EXPECT_TRUE(batches_fired("0ep", "4ep").empty());
  EXPECT_TRUE(batches_fired("0ba", "4ep").empty());
}

}  // namespace
}  // namespace tutti
