#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>

#include "tests/device/graph.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

void free_block(void* at) {
  if (!at) return;
  State& s = state();
  const Lock lock(s.mutex);
  s.memory.give(at, s.order);
}

void free_shadow(void* shadow) {
  if (shadow) free_block(state().memory.device_arena.to_front(shadow));
}

std::atomic<MemoryWatch> memory_watch{nullptr};

// `writer`: a kernel that writes the block at once, or null.
char* allocate_block(int device, int stream, std::size_t bytes, const Kernel* writer) {
  if (const MemoryWatch watch = memory_watch; watch && device != kPinned) watch(device, bytes);
  State& s = state();
  const Lock lock(s.mutex);
  const Graph* const graph = device == kPinned ? nullptr : recording();
  char* const at = s.memory.take(device, stream, bytes, s.order.known(), graph ? graph->pool() : 0).at;
  if (writer && !graph) s.memory.note(*writer, at, at + bytes, true);
  return at;
}

class OfDevices final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = current_device();
    if (bytes == 0) return device_memory(nullptr, device);
    return device_memory(allocate_block(device, current_stream(device), bytes, nullptr), device);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const auto size = static_cast<int64_t>(bytes);
    launch("copy_data", {{from, size, false}, {to, size, true}},
           [=] { std::memcpy(shadow(to), shadow(from), bytes); });
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    refuse_within_graph("emptyCache");
    State& s = state();
    Lock lock(s.mutex);
    ++s.empty_cache_calls;
    Clock all;
    for (int stream = 0; stream < kDevices * kStreamsOfADevice; ++stream) all.join(s.order.mark(stream));
    host_wait(lock, all, "emptyCache");
    s.memory.release_cached();
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    State& s = state();
    const Lock lock(s.mutex);
    s.memory.record_stream(data.get(), stream_number(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const Lock lock(state().mutex);
    return state().memory.stats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    const Lock lock(state().mutex);
    auto& stats = state().memory.stats(device);
    for (auto* one : {&stats.allocation, &stats.allocated_bytes, &stats.reserved_bytes})
      (*one)[0].reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    const Lock lock(state().mutex);
    auto& stats = state().memory.stats(device);
    for (auto* one : {&stats.allocation, &stats.allocated_bytes, &stats.reserved_bytes})
      (*one)[0].reset_peak();
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const Lock lock(state().mutex);
    const auto& account = state().memory.account(device);
    const auto total = account.budget != 0 ? account.budget : Memory::kBytesOfADevice;
    const int64_t used = account.stats.allocated_bytes[0].current;
    return {static_cast<std::size_t>(std::max<int64_t>(total - used, 0)), static_cast<std::size_t>(total)};
  }
};

// libtorch's CPU allocator. Within a kernel, memory of the device: results, and scratch that the kernel
// writes.
class OfKernels final : public c10::Allocator {
 public:
  explicit OfKernels(c10::Allocator* plain) { plain_ = plain; }

  c10::DataPtr allocate(std::size_t bytes) override {
    const Kernel* const kernel = running_kernel();
    if (!kernel) return plain_->allocate(bytes);
    if (bytes == 0) return {nullptr, nullptr, &free_shadow, c10::kCPU};
    char* const front = allocate_block(device_of(kernel->stream), kernel->stream, bytes, kernel);
    char* const at = state().memory.device_arena.to_shadow(front);
    return {at, at, &free_shadow, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void free_any(void* at) {
    if (state().memory.device_arena.in_shadow(at)) return free_shadow(at);
    plain_->raw_deleter()(at);
  }
  static inline c10::Allocator* plain_ = nullptr;
};

class OfPinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    char* const at = allocate_block(kPinned, 0, bytes, nullptr);
    return {at, at, &free_block, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::DataPtr device_memory(char* front, int device) { return {front, front, &free_block, device_at(device)}; }

c10::DeviceAllocator& device_allocator() {
  static auto& allocator = *new OfDevices;  // tensors may outlive static objects
  return allocator;
}

c10::Allocator& pinned_allocator() {
  static auto& allocator = *new OfPinnedMemory;
  return allocator;
}

void redirect_cpu_allocator() {
  static auto& allocator = *new OfKernels(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
}

void watch_memory(MemoryWatch before) { memory_watch = before; }

}  // namespace tutti::test_device
