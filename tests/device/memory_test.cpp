#include <ATen/DeviceAccelerator.h>
#include <sys/mman.h>

#include <vector>

#include "collectives/device_entry.h"
#include "tests/device/nets.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;
using testing::Contains;
using testing::Pair;

class DeviceMemory : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    at::accelerator::emptyCache();
    reset_peak(0);
    ASSERT_EQ(used_bytes(0), 0);
  }
  void TearDown() override {
    fail_at(0, 0);
    set_budget(0, 0);
    EXPECT_EQ(used_bytes(0), 0);
    DeviceTest::TearDown();
  }
};
TUTTI_IN_BOTH_MODES(DeviceMemory);

TEST_P(DeviceMemory, BytesAreThoseAskedFor) {
  Tensor x = at::ones({1001}, floats());
  EXPECT_EQ(used_bytes(0), 4004);
  EXPECT_EQ(used_bytes(1), 0);
  x = Tensor();
  EXPECT_EQ(used_bytes(0), 0);
  EXPECT_EQ(peak_bytes(0), 4004);
  reset_peak(0);
  EXPECT_EQ(peak_bytes(0), 0);
}

TEST_P(DeviceMemory, StatisticsAreThoseOfAnAccelerator) {
  const Tensor x = at::ones({1001}, floats());
  const auto stats = at::accelerator::getDeviceStats(0);
  EXPECT_EQ(stats.allocated_bytes[0].current, 4004);
  EXPECT_EQ(stats.allocation[0].current, 1);
  EXPECT_EQ(stats.reserved_bytes[0].current, 4096);  // in units of 512
  const auto [free, total] = at::accelerator::getMemoryInfo(0);
  EXPECT_EQ(total - free, 4004U);
  at::accelerator::resetPeakStats(0);
  at::accelerator::resetAccumulatedStats(0);
  EXPECT_EQ(at::accelerator::getDeviceStats(0).allocated_bytes[0].peak, 4004);
  EXPECT_EQ(at::accelerator::getDeviceStats(0).allocated_bytes[0].allocated, 0);
}

TEST_P(DeviceMemory, FreedBlocksAreReusedNewestFirstOnTheirStream) {
  Tensor older = at::empty({1000}, floats()), newer = at::empty({1000}, floats());
  const void* const first = older.const_data_ptr();
  const void* const second = newer.const_data_ptr();
  older = Tensor();
  newer = Tensor();
  EXPECT_NE(on(side_stream(), [] { return at::empty({1000}, floats()).const_data_ptr(); }), second);
  EXPECT_NE(at::empty({2000}, floats()).const_data_ptr(), second);
  newer = at::empty({1000}, floats());
  older = at::empty({1000}, floats());
  EXPECT_EQ(newer.const_data_ptr(), second);
  EXPECT_EQ(older.const_data_ptr(), first);
}

TEST_P(DeviceMemory, CacheIsEmptiedAfterAWait) {
  const int64_t calls = empty_cache_calls();
  Tensor keeps = at::ones({1000}, floats());
  at::ones({500000}, floats());
  const int64_t reserved = at::accelerator::getDeviceStats(0).reserved_bytes[0].current;
  EXPECT_EQ(reserved, 4096 + (2 << 20));
  at::accelerator::emptyCache();
  EXPECT_EQ(empty_cache_calls(), calls + 1);
  EXPECT_EQ(at::accelerator::getDeviceStats(0).reserved_bytes[0].current, 4096);
  EXPECT_THAT(host_waits(), Contains(Pair("emptyCache", 1)));
  EXPECT_EQ(keeps.sum().item<float>(), 1000);
}

TEST_P(DeviceMemory, EmptiedMemoryIsWhole) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(at::empty({1 << 20}, floats()));
  const void* const begin = parts[0].const_data_ptr();
  parts.clear();
  at::accelerator::emptyCache();
  EXPECT_EQ(at::empty({8 << 20}, floats()).const_data_ptr(), begin);
}

TEST_P(DeviceMemory, BudgetIsKept) {
  const Tensor half = at::ones({500}, floats());
  set_budget(0, 4000);
  EXPECT_THAT(at::accelerator::getMemoryInfo(0), Pair(2000, 4000));
  EXPECT_NO_THROW(at::ones({500}, floats()));
  EXPECT_THROW(at::ones({501}, floats()), c10::OutOfMemoryError);
  EXPECT_NO_THROW(at::ones({5000}, floats(1)));
}

int64_t watched_bytes = 0;

TEST_P(DeviceMemory, AllocationsAreWatched) {
  watched_bytes = 0;
  watch_memory([](int on, std::size_t bytes) {
    watched_bytes += static_cast<int64_t>(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, on == 0 && bytes < 4000, "too much");
  });
  const Tensor x = at::ones({100}, floats());
  EXPECT_EQ(watched_bytes, 400);
  at::native_dropout(x, 0.5, true);  // allocates within its kernel
  EXPECT_GE(watched_bytes, 900);
  EXPECT_THROW(at::ones({1000}, floats()), c10::OutOfMemoryError);
  at::empty({1000}, at::TensorOptions().pinned_memory(true));
  watch_memory(nullptr);
  EXPECT_NO_THROW(at::ones({1000}, floats()));
}

TEST_P(DeviceMemory, ResizingKeepsValues) {
  Tensor x = at::arange(4, floats());
  x.resize_({2, 4});
  EXPECT_EQ(used_bytes(0), 32);
  EXPECT_TRUE(x[0].cpu().equal(at::arange(4, at::kFloat)));
}

TEST_P(DeviceMemory, OutputsOfAnotherSizeAreResized) {
  Tensor out = at::empty({0}, floats());
  at::mm_out(out, at::ones({3, 2}, floats()), at::ones({2, 5}, floats()));
  EXPECT_EQ(out.sizes(), at::IntArrayRef({3, 5}));
  EXPECT_EQ(out.sum().item<float>(), 30);
}

TEST_P(DeviceMemory, OutputsThatAreTooSmallAreFoundLate) {
  Tensor out = at::empty({7}, floats());
  const auto multiply = [&] {
    at::mm_out(out, at::ones({3, 2}, floats()), at::ones({2, 50}, floats()));
    guard().synchronizeDevice(0);
  };
  if (is_late()) {
    EXPECT_THROW(multiply(), c10::Error);
  } else {
    multiply();
    EXPECT_EQ(out.sum().item<float>(), 300);
  }
}

TEST_P(DeviceMemory, EachAllocationOfAStepMayFail) {
  const Training step{Net::kConv, 1};
  train(device(), step);
  guard().synchronizeDevice(0);
  int64_t failed = 0;
  for (;; ++failed) {
    const int64_t before = allocations(0);
    fail_at(0, failed + 1);
    try {
      train(device(), step);
      EXPECT_EQ(allocations(0) - before, failed);
      break;
    } catch (const c10::OutOfMemoryError&) {
      EXPECT_EQ(used_bytes(0), 0) << "allocation " << failed + 1;
    }
    ASSERT_LT(failed, 1000);
  }
  EXPECT_GT(failed, 50);
}

TEST_P(DeviceMemory, FileIsTheMemory) {
  const Tensor x = at::full({4}, 5.0, floats(2));
  guard().synchronizeDevice(2);
  void* const all =
      mmap(nullptr, static_cast<std::size_t>(memory_file_bytes()), PROT_READ, MAP_SHARED, memory_file(), 0);
  ASSERT_NE(all, MAP_FAILED);
  const char* const at = static_cast<const char*>(all) + offset_in_memory_file(x.const_data_ptr());
  EXPECT_EQ(*reinterpret_cast<const float*>(at), 5);
  munmap(all, static_cast<std::size_t>(memory_file_bytes()));
}

class Accelerator : public DeviceTest {};
TUTTI_IN_BOTH_MODES(Accelerator);

TEST_P(Accelerator, IsTheTestDevice) {
  EXPECT_EQ(at::accelerator::getAccelerator(true), c10::kPrivateUse1);
  EXPECT_EQ(tutti_device_type(), static_cast<int>(c10::kPrivateUse1));
  EXPECT_EQ(at::accelerator::deviceCount(), tutti_device_count());
  EXPECT_EQ(device(2).str(), "test:2");
  EXPECT_THROW(tutti_device_start("lazy"), c10::Error);
}

TEST_P(Accelerator, DeviceAndStreamAreTheThreads) {
  at::accelerator::setDeviceIndex(2);
  const c10::Stream stream = side_stream(2);
  at::accelerator::setCurrentStream(stream);
  on_a_thread([&] {
    EXPECT_EQ(at::accelerator::getDeviceIndex(), 0);
    EXPECT_EQ(at::accelerator::getCurrentStream(2), guard().getDefaultStream(device(2)));
  });
  EXPECT_EQ(at::accelerator::getCurrentStream(2), stream);
  EXPECT_EQ(at::ones({1}, at::TensorOptions(c10::kPrivateUse1)).device(), device(2));
  at::accelerator::synchronizeDevice(2);
  EXPECT_EQ(at::accelerator::exchangeDevice(0), 2);
  EXPECT_EQ(at::accelerator::maybeExchangeDevice(-1), 0);
  EXPECT_THROW(at::accelerator::setDeviceIndex(9), c10::Error);
  at::accelerator::setCurrentStream(guard().getDefaultStream(device(2)));
  at::accelerator::setDeviceIndex(0);
}

}  // namespace
}  // namespace tutti::test_device
