#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tensors/autograd.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

constexpr int kRank = 7;

class AutogradSweepTest : public testing::Test {
 protected:
  void SetUp() override {
    Meter::install();
    Meter::set_owner(kRank);
  }
  void TearDown() override {
    Meter::fail_at(kRank, {});
    Meter::set_owner(0);
  }
};

// A chain with branches, so that work waits in the queue while other work fails.
at::Tensor branching(const at::Tensor& leaf) {
  at::Tensor x = leaf;
  for (int i = 0; i < 3; ++i) x = (x * x).sin() + (x * 2).cos() * x.exp();
  return x.sum();
}

TEST_F(AutogradSweepTest, AFailedBackwardLeavesNoTensorsHeld) {
  AutogradSweep sweep;
  const at::Tensor leaf = at::ones({1000}).requires_grad_(true);
  int held_at_some = 0;
  bool completed = false;
  for (int64_t ordinal = 1; !completed; ++ordinal) {
    {
      const MemoryScope scope(kRank);
      Meter::fail_at(kRank, {ordinal});
      try {
        branching(leaf).backward();
        completed = true;
      } catch (const c10::OutOfMemoryError&) {
      }
    }
    leaf.mutable_grad() = at::Tensor();
    if (Meter::scoped_bytes(kRank) > 0) ++held_at_some;
    sweep.run();
    ASSERT_EQ(Meter::scoped_bytes(kRank), 0) << "after a failure at allocation " << ordinal;
  }
  EXPECT_GT(held_at_some, 0) << "nothing was ever held: this proves nothing";
}

}  // namespace
}  // namespace tutti
