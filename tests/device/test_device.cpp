#include "tests/device/test_device.h"

#include <utility>

#include "tests/device/graph.h"
#include "tests/device/launch_order.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

void set_mode(Mode mode) {
  Lock lock(state().mutex);
  if (state().order.mode == mode) return;
  state().order.run_all(lock);
  state().order.mode = mode;
}

c10::Device device(int index) { return device_at(index); }

std::vector<std::string> take_findings() {
  const Lock lock(state().mutex);
  return state().memory.take_findings();
}

Counters counters() {
  const Lock lock(state().mutex);
  return state().order.counters;
}

std::map<std::string, int64_t> kernels_seen() {
  const Lock lock(state().mutex);
  return state().order.kernels;
}

std::map<std::string, int64_t> host_waits() {
  const Lock lock(state().mutex);
  return state().order.waits;
}

std::map<std::string, int64_t> stalls() {
  const Lock lock(state().mutex);
  return state().order.stalls;
}

void reset_counters() {
  const Lock lock(state().mutex);
  state().order.counters = {};
  state().order.kernels.clear();
  state().order.waits.clear();
  state().order.stalls.clear();
}

std::string where(const void* address) {
  const Lock lock(state().mutex);
  return state().memory.describe(address);
}

int64_t used_bytes(int device) {
  const Lock lock(state().mutex);
  return state().memory.stats(device).allocated_bytes[0].current;
}

int64_t peak_bytes(int device) {
  const Lock lock(state().mutex);
  return state().memory.stats(device).allocated_bytes[0].peak;
}

void reset_peak(int device) {
  const Lock lock(state().mutex);
  state().memory.stats(device).allocated_bytes[0].reset_peak();
}

void set_budget(int device, int64_t bytes) {
  const Lock lock(state().mutex);
  state().memory.account(device).budget = bytes;
}

void fail_at(int device, int64_t ordinal) {
  const Lock lock(state().mutex);
  auto& account = state().memory.account(device);
  account.next_failure = ordinal == 0 ? 0 : account.asked + ordinal;
}

int64_t allocations(int device) {
  const Lock lock(state().mutex);
  return state().memory.account(device).asked;
}

int64_t empty_cache_calls() {
  const Lock lock(state().mutex);
  return state().empty_cache_calls;
}

int memory_file() { return state().memory.device_arena.file(); }
int64_t memory_file_bytes() { return static_cast<int64_t>(state().memory.device_arena.bytes()); }
int64_t offset_in_memory_file(const void* address) {
  TORCH_CHECK(state().memory.device_arena.in_front(address), "no address of a test device's memory");
  return state().memory.device_arena.offset_of(address);
}

std::map<int, std::vector<std::string>> take_communicator_calls() { return launch_order().take_calls(); }

HostClock clock_of_this_thread() { return host_clock(); }

void join_this_thread(const HostClock& clock) {
  const Lock lock(state().mutex);
  state().order.join(clock);
  state().memory.open_pinned(host_clock());
}

void set_event_latency(int queries) {
  const Lock lock(state().mutex);
  state().event_latency = queries;
}

void launch(const char* name, const std::vector<Range>& ranges, std::function<void()> work) {
  if (Graph* const graph = recording()) {
    std::vector<Graph::Use> uses;
    for (const Range& one : ranges) {
      const auto* const begin = static_cast<const char*>(one.data);
      uses.push_back({{begin, begin + one.bytes}, one.write});
    }
    Aliases aliases;
    graph->run(name, uses, aliases, [work = std::move(work)]() -> std::vector<at::Tensor> {
      work();
      return {};
    });
    return;
  }
  State& s = state();
  Lock lock(s.mutex);
  const Kernel kernel = s.order.launch(name, current_stream(current_device()));
  for (const Range& one : ranges) {
    const auto* const begin = static_cast<const char*>(one.data);
    s.memory.note(kernel, begin, begin + one.bytes, one.write);
  }
  s.order.submit(lock, kernel, std::move(work));
}

void* shadow(const void* address) {
  const Memory& memory = state().memory;
  if (memory.device_arena.in_front(address)) return memory.device_arena.to_shadow(address);
  if (memory.pinned_arena.in_front(address)) return memory.pinned_arena.to_shadow(address);
  return const_cast<void*>(address);
}

}  // namespace tutti::test_device
