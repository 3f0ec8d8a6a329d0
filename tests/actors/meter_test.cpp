#include "tensors/meter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr int kRank = 5;

class MeterTest : public testing::Test {
 protected:
  void SetUp() override {
    Meter::install();
    Meter::set_owner(kRank);
    start_ = Meter::used_bytes(kRank);
    Meter::reset_peak(kRank);
  }
  void TearDown() override { Meter::set_owner(0); }
  int64_t used() const { return Meter::used_bytes(kRank) - start_; }
  int64_t peak() const { return Meter::peak_bytes(kRank) - start_; }
  int64_t start_ = 0;
};

TEST_F(MeterTest, CountsWhatIsHeldAndTheMostThatWas) {
  {
    const at::Tensor kept = at::empty({1000});
    EXPECT_EQ(used(), 4000);
    { const at::Tensor passing = at::empty({500}, at::kDouble); }
    EXPECT_EQ(used(), 4000);
    EXPECT_EQ(peak(), 8000);
  }
  EXPECT_EQ(used(), 0);
}

TEST_F(MeterTest, FreeingCreditsTheOwnerWhoeverFrees) {
  at::Tensor tensor = at::empty({256}, at::kByte);
  Meter::set_owner(kRank + 1);
  const int64_t other = Meter::used_bytes(kRank + 1);
  tensor.reset();
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(Meter::used_bytes(kRank + 1), other);
}

TEST_F(MeterTest, LargeBlockIsHandedOutAgain) {
  at::Tensor tensor = at::empty({8'000'000}, at::kByte);
  const void* first = tensor.data_ptr();
  tensor.reset();
  EXPECT_EQ(used(), 0);
  tensor = at::empty({7'900'000}, at::kByte);
  EXPECT_EQ(tensor.data_ptr(), first);
}

TEST_F(MeterTest, DataIsAlignedForVectors) {
  for (const int64_t bytes : {1, 100, 1 << 20, 5 << 20})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at::empty({bytes}, at::kByte).data_ptr()) % 64, 0u);
}

TEST_F(MeterTest, TooMuchIsOutOfMemory) {
  EXPECT_THROW(at::empty({int64_t{1} << 50}, at::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(used(), 0);
}

}  // namespace
}  // namespace tutti
