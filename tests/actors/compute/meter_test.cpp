#include "tensors/memory/meter.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <new>
#include <thread>

#include "runtime/process/memory_limits.h"
#include "tensors/process_state.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr int kMeteredRank = 5;

class MeterTest : public testing::Test {
 protected:
  void SetUp() override {
    Meter::install();
    Meter::set_owner(kMeteredRank);
    start_ = Meter::used_bytes(kMeteredRank);
    Meter::reset_peak(kMeteredRank);
  }
  void TearDown() override {
    Meter::set_budget(kMeteredRank, 0);
    Meter::fail_at(kMeteredRank, {});
    Meter::set_owner(0);
  }
  int64_t used() const { return Meter::used_bytes(kMeteredRank) - start_; }
  int64_t peak() const { return Meter::peak_bytes(kMeteredRank) - start_; }
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
  Meter::set_owner(kMeteredRank + 1);
  const int64_t other = Meter::used_bytes(kMeteredRank + 1);
  tensor.reset();
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(Meter::used_bytes(kMeteredRank + 1), other);
}

// A control group of 400 MB, of which others use some.
class LimitedMeterTest : public MeterTest {
 protected:
  void SetUp() override {
    MeterTest::SetUp();
    Meter::give_back();
    write_text(folder_.path("mountinfo"), "41 31 0:38 / " + folder_.path() + " rw - cgroup2 cgroup2 rw\n");
    write_text(folder_.path("cgroup"), "0::/\n");
    write_text(folder_.path("memory.max"), "400000000\n");
    others_use(0);
    Meter::set_limits(std::make_unique<MemoryLimits>(folder_.path()));
  }
  void TearDown() override {
    Meter::set_limits(std::make_unique<MemoryLimits>());
    MeterTest::TearDown();
  }
  void others_use(int64_t bytes) { write_text(folder_.path("memory.current"), std::to_string(bytes) + "\n"); }
  Scratch folder_;
};

TEST_F(LimitedMeterTest, ReserveIsLeftToOthers) {
  constexpr int64_t kLeft = 100'000'000;
  others_use(400'000'000 - kLeft);
  const int64_t most = kLeft - Meter::kReserveBytes - (int64_t{2} << 20);  // blocks are of whole huge pages
  at::empty({most}, at::kByte);
  Meter::give_back();
  EXPECT_THROW(at::empty({kLeft - Meter::kReserveBytes}, at::kByte), c10::OutOfMemoryError);
  const MemoryScope scope(kMeteredRank);
  EXPECT_THROW(at::empty({most}, at::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(scope.failure()->asked_bytes, most);
  EXPECT_EQ(scope.failure()->budget_bytes, 0);
  at::empty({most - Meter::kReserveBytes}, at::kByte);
}

TEST_F(LimitedMeterTest, CachedBlockIsNoNewMemory) {
  at::empty({8'000'000}, at::kByte);
  others_use(400'000'000);
  at::empty({8'000'000}, at::kByte);
  EXPECT_THROW(at::empty({16'000'000}, at::kByte), c10::OutOfMemoryError);
  EXPECT_THROW(at::empty({8'000'000}, at::kByte), c10::OutOfMemoryError) << "the cache was given back";
}

TEST_F(LimitedMeterTest, SmallTensorsComeToItTogether) {
  others_use(400'000'000);
  std::vector<at::Tensor> held;
  const auto take = [&] {
    for (int i = 0; i < 200; ++i) held.push_back(at::empty({100'000}, at::kByte));
  };
  EXPECT_THROW(take(), c10::OutOfMemoryError);
  others_use(0);
  take();
}

TEST_F(LimitedMeterTest, ErrorNamesTheLimit) {
  try {
    at::empty({500'000'000}, at::kByte);
    FAIL();
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "out of memory: 500000000 bytes could not be allocated; memory limit of the "
                 "control group of 400.0 MB, of which 400.0 MB are left");
  }
}

// An allocation that finds no memory gets that of the cache.
TEST_F(MeterTest, OperatorNewEmptiesTheCache) {
  at::empty({400'000'000}, at::kByte);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlimit lower{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{32} << 20),
                     before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_NO_THROW(std::make_unique<char[]>(300'000'000));
  EXPECT_THROW(std::make_unique<char[]>(800'000'000), std::bad_alloc);
  setrlimit(RLIMIT_AS, &before);
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

TEST_F(MeterTest, ScopeIsHeldToTheBudget) {
  Meter::set_budget(kMeteredRank, start_ + 4000);
  const at::Tensor unheld = at::empty({3000}, at::kByte);
  {
    MemoryScope scope(kMeteredRank);
    const at::Tensor fits = at::empty({1000}, at::kByte);
    EXPECT_THROW(at::empty({1}, at::kByte), c10::OutOfMemoryError);
    EXPECT_EQ(Meter::scoped_bytes(kMeteredRank), 1000);
    ASSERT_TRUE(scope.failure());
    EXPECT_EQ(scope.failure()->asked_bytes, 1);
    EXPECT_EQ(scope.failure()->used_bytes - start_, 4000);
    EXPECT_EQ(scope.failure()->budget_bytes - start_, 4000);
    EXPECT_EQ(scope.failure()->ordinal, 2);
  }
  const at::Tensor beyond = at::empty({5000}, at::kByte);
  EXPECT_EQ(Meter::scoped_bytes(kMeteredRank), 0);
}

TEST_F(MeterTest, FirstAllocationAfterAPlaceFails) {
  MemoryScope::pass_place();  // of no scope
  Meter::fail_at_place(kMeteredRank, 2);
  MemoryScope scope(kMeteredRank);
  MemoryScope::pass_place();
  {
    const MemoryScopePause pause;
    MemoryScope::pass_place();
  }
  const at::Tensor before = at::empty({10}, at::kByte);
  EXPECT_EQ(scope.places(), 1);
  MemoryScope::pass_place();
  EXPECT_THROW(at::empty({10}, at::kByte), c10::OutOfMemoryError);
  ASSERT_TRUE(scope.failure());
  EXPECT_EQ(scope.failure()->place, 2);
  MemoryScope::pass_place();
  Meter::fail_at_place(kMeteredRank, 1);
  Meter::fail_at_place(kMeteredRank, 0);
  MemoryScope::pass_place();
  const at::Tensor after = at::empty({10}, at::kByte);
}

TEST_F(MeterTest, OtherThreadsAreNotHeldBack) {
  Meter::set_budget(kMeteredRank, 1);
  const MemoryScope scope(kMeteredRank);
  EXPECT_NO_THROW(std::thread([] { at::empty({1000}); }).join());
  EXPECT_THROW(at::empty({1000}), c10::OutOfMemoryError);
}

TEST_F(MeterTest, ChosenAllocationsFail) {
  const int64_t before = Meter::scoped_allocations(kMeteredRank);
  Meter::fail_at(kMeteredRank, {2, 4});
  std::vector<bool> failed;
  for (int i = 0; i < 6; ++i) {
    at::empty({10});  // outside of a scope none is counted
    const MemoryScope scope(kMeteredRank);
    try {
      at::empty({10});
      failed.push_back(false);
    } catch (const c10::OutOfMemoryError&) {
      failed.push_back(true);
    }
  }
  EXPECT_EQ(failed, (std::vector<bool>{false, true, false, true, false, false}));
  EXPECT_EQ(Meter::scoped_allocations(kMeteredRank), before + 6);
}

TEST_F(MeterTest, PassingTheRunTokenIsNotTheScopes) {
  ProcessStateSwitch ranks(kMeteredRank + 2);
  ranks.enter(kMeteredRank);
  const int64_t before = Meter::scoped_allocations(kMeteredRank);
  {
    const MemoryScope scope(kMeteredRank);
    Meter::fail_at(kMeteredRank, {1});
    EXPECT_NO_THROW(ranks.enter(kMeteredRank + 1));
    EXPECT_NO_THROW(ranks.enter(kMeteredRank));
  }
  EXPECT_EQ(Meter::scoped_allocations(kMeteredRank), before);
}

TEST_F(MeterTest, MemoryOfOthersCountsWhenItIsCharged) {
  std::vector<char> memory(100);
  EXPECT_FALSE(Meter::counts(at::from_blob(memory.data(), {100}, at::kByte)));
  EXPECT_TRUE(Meter::counts(at::empty({100}, at::kByte)));
  Meter::charge(kMeteredRank, 100);
  EXPECT_EQ(used(), 100);
  Meter::charge(kMeteredRank, -100);
  EXPECT_EQ(used(), 0);
}

TEST_F(MeterTest, SystemThatHasNoMoreIsNamedInTheReport) {
  const MemoryScope scope(kMeteredRank);
  EXPECT_THROW(at::empty({int64_t{1} << 50}, at::kByte), c10::OutOfMemoryError);
  ASSERT_TRUE(scope.failure());
  EXPECT_EQ(scope.failure()->asked_bytes, int64_t{1} << 50);
  EXPECT_EQ(scope.failure()->budget_bytes, 0);
}

}  // namespace
}  // namespace tutti
