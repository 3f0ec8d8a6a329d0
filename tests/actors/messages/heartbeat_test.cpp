#include "actors/messages/heartbeat.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using enum TraceKind;

const TimePoint kNow{std::chrono::hours(1)};

// The heartbeat of a rank whose actors recorded these events, each with its age.
Heartbeat heard(const std::vector<std::pair<TraceKind, int>>& compute_did, bool waiting = false) {
  RingRecorder recorder;
  for (const auto& [kind, age_s] : compute_did)
    recorder.record({kNow - std::chrono::seconds(age_s), kind, 12});
  recorder.record({kNow, kVerdict, 12});
  return parse_heartbeat(heartbeat_text(recorder, kNow, waiting)).value();
}

TEST(HeartbeatTest, ReportsTheLastEventAndItsAge) {
  const Heartbeat heartbeat = heard({{kMicrobatch, 9}, {kBackwardDone, 3}});
  EXPECT_EQ(heartbeat.last, kBackwardDone);
  EXPECT_EQ(heartbeat.step, 12);
  EXPECT_DOUBLE_EQ(heartbeat.age_s, 3);
  EXPECT_EQ(heartbeat.text(), "step 12, backward done, 3.0 s ago");
}

TEST(HeartbeatTest, ReportsWhetherTheRankWaitsForOthers) {
  EXPECT_FALSE(heard({{kBatch, 1}}).waiting);
  EXPECT_TRUE(heard({{kBatch, 1}}, true).waiting);
  EXPECT_EQ(heard({{kBatch, 1}}, true).text(), "step 12, batch, 1.0 s ago, waiting for other ranks");
}

TEST(HeartbeatTest, ARankThatIsDoneOrWorksAloneIsUnhurried) {
  EXPECT_FALSE(heard({{kBatch, 100}}).unhurried());
  for (TraceKind kind : {kVerifies, kPrepares, kDone, kWritesText, kWaitsForDisk})
    EXPECT_TRUE(heard({{kBatch, 100}, {kind, 90}}).unhurried());
}

// More than ranks are likely to be; each has sent rank 0 its part of the last checkpoint.
TEST(HeartbeatTest, ReportsTheEventBeforeManyPackets) {
  RingRecorder recorder;
  recorder.record({kNow, kWaitsForDisk, 12});
  for (int rank = 1; rank <= 500; ++rank) recorder.record({kNow, kControlReceived, 12, rank});
  EXPECT_EQ(parse_heartbeat(heartbeat_text(recorder, kNow, false)).value().last, kWaitsForDisk);
}

TEST(HeartbeatTest, OtherPacketsAreNone) { EXPECT_FALSE(parse_heartbeat("durable x").has_value()); }

}  // namespace
}  // namespace tutti
