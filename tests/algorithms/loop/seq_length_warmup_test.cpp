#include "algorithms/loop/seq_length_warmup.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using enum Event;

constexpr SeqLengthWarmup::Options kShort{
    .duration = 0.5, .min_seq_length = 4, .max_seq_length = 12, .step_size = 4};

State text_state(int64_t step) {
  State state = image_state(step);
  state.batch = {};
  state.batch.set("input", at::arange(36).view({3, 12}));
  state.batch.set("target", at::arange(36).view({3, 12}) + 1);
  return state;
}

TEST(SeqLengthWarmupTest, ActsOnTheWholeBatch) {
  EXPECT_EQ(events_of(SeqLengthWarmup({})), std::set{kAfterDataloader});
}

// Two steps of 4 in 50 batches: one after 25, one after 50.
TEST(SeqLengthWarmupTest, SequencesGrowToTheirFullLength) {
  SeqLengthWarmup warmup(kShort);
  const auto length = [&](int64_t step) {
    return input_after(warmup, text_state(step), kAfterDataloader).size(1);
  };
  EXPECT_EQ(length(0), 4);
  EXPECT_EQ(length(24), 4);
  EXPECT_EQ(length(25), 8);
  EXPECT_EQ(length(50), 12);
  EXPECT_EQ(length(99), 12);
}

TEST(SeqLengthWarmupTest, MayMakeMoreSequencesInstead) {
  SeqLengthWarmup::Options options = kShort;
  options.truncate = false;
  State state = text_state(0);
  SeqLengthWarmup warmup(options);
  run(warmup, state, {kAfterDataloader});
  EXPECT_TRUE(at::equal(state.batch["input"], at::arange(36).view({9, 4})));
  EXPECT_TRUE(at::equal(state.batch["target"], at::arange(36).view({9, 4}) + 1));
}

// Real tokens of each sequence: 12, 3 and none.
// Of two ranks with three samples each, the second has the places from 3 on; of nine, from 9 on.
TEST(SeqLengthWarmupTest, PlacesFollowTheNumberOfSequences) {
  auto options = kShort;
  options.truncate = false;
  SeqLengthWarmup warmup(options);
  State state = text_state(0);
  state.first_sample = 3;
  run(warmup, state, {kAfterDataloader});
  EXPECT_EQ(state.batch.samples(), 9);
  EXPECT_EQ(state.first_sample, 9);
}

TEST(SeqLengthWarmupTest, SequencesThatAreNeverShortenedAreAWarning) {
  std::string warned;
  State state = text_state(0);
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  Batch sample = state.batch.narrow(0, 1);
  EXPECT_TRUE(SeqLengthWarmup(kShort).try_on(state, sample));
  EXPECT_EQ(sample["input"].size(1), 4);
  EXPECT_EQ(warned, "");
  EXPECT_TRUE(SeqLengthWarmup(kShort).try_on(state, sample));
  EXPECT_EQ(warned,
            "SeqLengthWarmup has no effect: sequences of 4 tokens are no longer than min_seq_length = 4");
  warned.clear();
  state.topology.rank = 1;
  SeqLengthWarmup(kShort).try_on(state, sample);
  EXPECT_EQ(warned, "") << "rank 0 has said so";
}

TEST(SeqLengthWarmupTest, TheLastTokenMayBeKept) {
  Batch batch = text_state(0).batch;
  const at::Tensor lengths = at::tensor({12, 3, 0}).view({3, 1});
  batch.set("attention_mask", (at::arange(12) < lengths).to(at::kLong));
  const Batch shorter = set_batch_sequence_length(batch, 4, {.preserve_end_of_sequence = true});
  EXPECT_TRUE(
      at::equal(shorter["input"], at::tensor({0, 1, 2, 11, 12, 13, 14, 15, 24, 25, 26, 35}).view({3, 4})));
  EXPECT_TRUE(
      at::equal(shorter["attention_mask"], at::tensor({1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}).view({3, 4})));
}

TEST(SeqLengthWarmupTest, ArraysThatAreNoSequencesAreErrors) {
  Batch batch = text_state(0).batch;
  EXPECT_THROW(set_batch_sequence_length(batch, 4, {.preserve_end_of_sequence = true}), UserError);
  batch.set("label", at::arange(3));
  EXPECT_THROW(set_batch_sequence_length(batch, 4), UserError);
  batch.set("label", at::zeros({3, 6}));
  EXPECT_THROW(set_batch_sequence_length(batch, 4, {.truncate = false}), UserError);
}

TEST(SeqLengthWarmupTest, ATrainingThatItCannotDivideIsAnError) {
  const SeqLengthWarmup warmup(kShort);
  State state = text_state(0);
  state.max_duration = Time(3, TimeUnit::kBatch);
  EXPECT_THROW(warmup.length_at(state), UserError);
  state.max_duration = Time(1000, TimeUnit::kSample);
  EXPECT_THROW(warmup.length_at(state), UserError);
  state.max_duration = Time(2, TimeUnit::kEpoch);
  state.dataloader_len = 50;
  EXPECT_EQ(warmup.length_at(state), 4);
}

}  // namespace
}  // namespace tutti
