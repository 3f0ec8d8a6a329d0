#include "sim/faults/failing_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "tensors/memory/meter.h"

namespace tutti {
namespace {

constexpr int kSlot = 7;

class FailingMemoryTest : public testing::Test {
 protected:
  FailingMemoryTest() { Meter::install(); }
  ~FailingMemoryTest() override { Meter::fail_at(kSlot, {}); }

  // The number of allocations before one fails.
  static int had(int wanted) {
    const MemoryScope scope(kSlot);
    int had = 0;
    try {
      for (; had < wanted; ++had) at::empty({4});
    } catch (const c10::OutOfMemoryError&) {
    }
    return had;
  }

  FailingMemory memory_{kSlot};
};

TEST_F(FailingMemoryTest, FailsInItsPhaseOverAsManyMicrobatchesAsItTakes) {
  memory_.fail(FaultPhase::kBackward, 5, "this one");
  for (const int ends : {3, 1}) {
    memory_.enter(FaultPhase::kMicrobatch);
    EXPECT_EQ(had(10), 10);
    memory_.enter(FaultPhase::kBackward);
    EXPECT_EQ(had(3), ends);
  }
  EXPECT_EQ(memory_.failed(), std::vector<std::string>{"this one"});
  EXPECT_TRUE(memory_.failed().empty());
  EXPECT_EQ(had(10), 10);
}

TEST_F(FailingMemoryTest, SeveralFailuresDoNotTakeEachOthersPlace) {
  memory_.enter(FaultPhase::kMicrobatch);
  for (int i = 0; i < 3; ++i) memory_.fail(FaultPhase::kMicrobatch, 1);
  memory_.fail(FaultPhase::kBackward, 1);
  for (int attempt = 0; attempt < 3; ++attempt) {
    memory_.enter(FaultPhase::kMicrobatch);
    EXPECT_EQ(had(10), 0);
    EXPECT_EQ(memory_.failed().size(), 1u);
  }
  EXPECT_EQ(had(10), 10);
  memory_.enter(FaultPhase::kBackward);
  EXPECT_EQ(had(10), 0);
}

}  // namespace
}  // namespace tutti
