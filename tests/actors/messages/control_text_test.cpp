#include "actors/messages/control_text.h"

#include <gtest/gtest.h>

#include "actors/messages/heartbeat.h"

namespace tutti {
namespace {

TEST(ControlTextTest, FieldsSurviveTheWay) {
  const ControlText sent({"abort", "rank 1 hangs; the last it did: step 3, forward", ""});
  const auto received = ControlText::parse(sent.text());
  EXPECT_EQ(received.verb(), "abort");
  EXPECT_EQ(received.field(1), "rank 1 hangs; the last it did: step 3, forward");
  EXPECT_EQ(received.field(2), "");
}

TEST(ControlTextTest, AFieldWithTheSeparatorStaysOneField) {
  const auto received = ControlText::parse(ControlText({"abort",
                                                        "runs/a\x1f"
                                                        "b",
                                                        "last"})
                                               .text());
  EXPECT_EQ(received.field(1), "runs/a?b");
  EXPECT_EQ(received.field(2), "last");
}

TEST(ControlTextTest, AnEndKeepsItsKind) {
  const auto received =
      ControlText::parse(end_order("abort", {EndKind::kHang, "rank 1 hangs; the last it did: step 3"}));
  EXPECT_EQ(received.verb(), "abort");
  EXPECT_EQ(parse_end(received).kind, EndKind::kHang);
  EXPECT_EQ(parse_end(received).reason, "rank 1 hangs; the last it did: step 3");
}

TEST(ControlTextTest, DurablePartKeepsWhereItsPiecesLie) {
  Durable part{"ep1-ba15", "", {"rank-1.h5", 4096, 77, {}}, "{}", true};
  part.file.pieces.push_back({"model/0.weight", {10, 4}, {5, 0}, {5, 4}, at::kFloat, {}});
  part.file.pieces[0].at = 2048;
  const Durable back = parse_durable(ControlText::parse(durable_text(part)));
  EXPECT_EQ(back.name, part.name);
  EXPECT_TRUE(back.last);
  EXPECT_EQ(back.file.hash, 77u);
  ASSERT_EQ(back.file.pieces.size(), 1u);
  EXPECT_EQ(back.file.pieces[0].offset, (Shape{5, 0}));
  EXPECT_EQ(back.file.pieces[0].at, 2048u);
}

TEST(HeartbeatTest, ReportsTheLastEventThatComputeDid) {
  RingRecorder recorder;
  const TimePoint now{std::chrono::seconds(10)};
  recorder.record({now - std::chrono::seconds(3), TraceKind::kBackwardDone, 12});
  recorder.record({now - std::chrono::seconds(1), TraceKind::kReduceBucket, 12});
  const auto heartbeat = parse_heartbeat(heartbeat_text(recorder, now, /*waiting=*/false));
  ASSERT_TRUE(heartbeat);
  EXPECT_EQ(heartbeat->step, 12);
  EXPECT_EQ(heartbeat->last, TraceKind::kBackwardDone);
  EXPECT_NEAR(heartbeat->age_s, 3.0, 1e-6);
  EXPECT_FALSE(heartbeat->waiting);
}

TEST(HeartbeatTest, OtherPacketsAreNoHeartbeats) {
  EXPECT_FALSE(parse_heartbeat(ControlText({"finish", "0"}).text()));
}

}  // namespace
}  // namespace tutti
