#include "io/checkpoint/checkpoint_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunState state_at(int64_t epoch, int64_t batch) {
  RunState state;
  state.time = {.epoch = epoch,
                .batch = batch,
                .sample = 1234,
                .token = 56789,
                .batch_in_epoch = 7,
                .total_wct = 12.3456,
                .epoch_wct = 4.5};
  state.world = 3;
  return state;
}

std::string why(const std::string& pattern) {
  return message_of<UserError>([&] { CheckpointNames names(pattern, "digits"); });
}

TEST(CheckpointNames, AreByEpochAndBatch) { EXPECT_EQ(CheckpointNames().at(state_at(3, 57)), "ep3-ba57"); }

TEST(CheckpointNames, EveryPlaceholderIsReplaced) {
  const CheckpointNames names(
      "{run_name}_{batch}_{batch_in_epoch}_{sample}_{token}_{total_wct}_{epoch_wct}_{world_size}.pt",
      "digits");
  EXPECT_EQ(names.at(state_at(3, 57)), "digits_57_7_1234_56789_12.346_4.500_3.pt");
  EXPECT_TRUE(names.fits(names.at(state_at(3, 57))));
}

TEST(CheckpointNames, OfAnotherRunOrPatternDoNotFit) {
  const CheckpointNames names("{run_name}-ba{batch}", "a+b");
  EXPECT_TRUE(names.fits("a+b-ba12"));
  for (const char* other : {"aab-ba12", "a+b-ba", "a+b-ba12.replaced", "latest", "ep1-ba12", "xa+b-ba12"})
    EXPECT_FALSE(names.fits(other)) << other;
}

TEST(CheckpointNames, AreOrderedByBatchWhereverItStands) {
  EXPECT_THAT(CheckpointNames().ordered({"ep2-ba9", "latest", "ep1-ba10", "ep3-ba8"}),
              ElementsAre("ep3-ba8", "ep2-ba9", "ep1-ba10"));
  EXPECT_THAT(CheckpointNames("{epoch}_{batch_in_epoch}", "").ordered({"10_1", "9_20", "9_3"}),
              ElementsAre("9_3", "9_20", "10_1"));
}

TEST(CheckpointNames, HalfWrittenFoldersAreKnownWhateverTheNonce) {
  const CheckpointNames names("{run_name}-ba{batch}", "my-run");
  const std::string left = unfinished_name("my-run-ba20", "20260101T000000.000Z-1234abcd");
  EXPECT_TRUE(names.fits_unfinished(left));
  EXPECT_FALSE(names.fits(left));
  for (const char* other : {".lock", ".other-ba20-77", "my-run-ba20-77"})
    EXPECT_FALSE(names.fits_unfinished(other)) << other;
}

TEST(CheckpointNames, ARankHasNoPartInThem) {
  EXPECT_THAT(why("ep{epoch}-ba{batch}-rank{rank}.pt"), HasSubstr("one folder for all ranks"));
  EXPECT_THAT(why("ba{batch}-{local_rank}"), HasSubstr("leave {local_rank} out"));
}

TEST(CheckpointNames, AnImpossibleNameIsRefused) {
  EXPECT_THAT(why("ba{bacth}"), HasSubstr("unknown placeholder {bacth}; did you mean {batch}?"));
  EXPECT_THAT(why("ba{batch"), HasSubstr("no }"));
  EXPECT_THAT(why("after-{epoch_wct}"),
              HasSubstr("checkpoints of different steps would get the same name; add {batch}"));
  EXPECT_THAT(why("{epoch}/{batch}"), HasSubstr("without /"));
  EXPECT_THAT(why(""), HasSubstr("expected the name of a folder"));
  EXPECT_THAT(why(".{batch}"), HasSubstr("begin with a dot"));
  EXPECT_THAT(why("earlier-{batch}"), HasSubstr("put aside"));
}

TEST(CheckpointNames, TheLinkHasTheRunsNameButNoTime) {
  EXPECT_EQ(latest_name("newest-{run_name}", "digits"), "newest-digits");
  EXPECT_EQ(latest_name("", "digits"), "");
  const auto refused = [](const char* pattern) {
    return message_of<UserError>([&] { latest_name(pattern, "digits"); });
  };
  EXPECT_THAT(refused("latest-ba{batch}"), HasSubstr("moves on"));
  EXPECT_THAT(refused("latest-rank{rank}.pt"), HasSubstr("one folder for all ranks"));
}

}  // namespace
}  // namespace tutti
