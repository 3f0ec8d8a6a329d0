#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/seq_length_warmup.h"
#include "tests/golden/golden_file.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kSequencesFile = "seq_length_warmup.h5";

int64_t whole_number(const GoldenCase& c, const char* name) { return static_cast<int64_t>(c.number(name)); }

void expect_lengths(const GoldenCase& c) {
  c.expect_only({"truncate", "preserve_end_of_sequence", "curr_seq_len"});
  Batch batch;
  std::set<std::string> names;
  for (const std::string& name : c.names("in")) {
    batch.set(name, c.tensor("in/" + name));
    names.insert(name);
  }
  c.expect_only_outputs(names);
  const Batch shorter =
      set_batch_sequence_length(batch, whole_number(c, "curr_seq_len"),
                                {.truncate = c.number("truncate") != 0.0,
                                 .preserve_end_of_sequence = c.number("preserve_end_of_sequence") != 0.0});
  for (const std::string& name : names) c.expect_close(shorter[name], "out/" + name);
}

void expect_length_schedule(const GoldenCase& c) {
  c.expect_only(
      {"duration", "min_seq_length", "max_seq_length", "step_size", "dataloader_len", "max_duration"},
      {"batch"});
  c.expect_only_outputs({"curr_seq_len"});
  const SeqLengthWarmup algorithm({.duration = c.number("duration"),
                                   .min_seq_length = whole_number(c, "min_seq_length"),
                                   .max_seq_length = whole_number(c, "max_seq_length"),
                                   .step_size = whole_number(c, "step_size")});
  State state;
  state.dataloader_len = whole_number(c, "dataloader_len");
  state.max_duration = Time::parse(c.text("max_duration"));
  std::vector<int64_t> lengths;
  const at::Tensor batches = c.tensor("in/batch");
  for (int64_t i = 0; i < batches.size(0); ++i) {
    state.timestamp.batch = batches[i].item<int64_t>();
    lengths.push_back(algorithm.length_at(state));
  }
  c.expect_close(at::tensor(lengths), "out/curr_seq_len");
}

class GoldenSeqLengthWarmup : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSeqLengthWarmup, SetsLengthsAsComposerDoes) {
  const GoldenCase c(golden_path(kSequencesFile), GetParam());
  if (c.holds("in/batch"))
    expect_length_schedule(c);
  else
    expect_lengths(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSeqLengthWarmup,
                         testing::ValuesIn(golden_cases(golden_path(kSequencesFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSeqLengthWarmup);

}  // namespace
}  // namespace tutti
