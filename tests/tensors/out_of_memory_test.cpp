#include "tensors/out_of_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr OutOfMemoryReport kShortage{1, 3.2e6, 14.9e6, 16e6, 1e6, 1e6, 2e6, 5e5, 3e6};

std::vector<OutOfMemoryReport> after_the_sum(const std::vector<OutOfMemoryReport>& each) {
  const int world = static_cast<int>(each.size());
  at::Tensor sum = report_row(each[0], 0, world);
  for (int rank = 1; rank < world; ++rank) sum += report_row(each[rank], rank, world);
  return reports_of(sum);
}

TEST(OutOfMemoryReportTest, EveryRankReadsWhoItWas) {
  EXPECT_EQ(out_of_memory_text(after_the_sum({{}, kShortage, {}})),
            "rank 1 ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)");
  EXPECT_EQ(out_of_memory_text(after_the_sum({{}, kShortage, kShortage})),
            "rank 1 and 1 other ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)");
}

TEST(OutOfMemoryReportTest, WhatIsNotKnownIsNotSaid) {
  EXPECT_EQ(out_of_memory_text({{1}}), "rank 0 ran out of memory");
  EXPECT_EQ(out_of_memory_text({{1, 5e3, 1e9}}),
            "rank 0 ran out of memory (asked 0.0050 MB, 1000.0 MB in use)");
}

TEST(OutOfMemoryReportTest, WhatNothingElseHeldAreActivations) {
  EXPECT_EQ(what_held_memory({{}, kShortage}),
            "parameters 1.0 MB, gradients 1.0 MB, optimizer state 2.0 MB, the batch 0.5 MB, checkpoint copy "
            "3.0 MB, the rest (activations, batches read ahead) 7.4 MB");
}

}  // namespace
}  // namespace tutti
