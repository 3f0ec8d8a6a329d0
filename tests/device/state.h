#pragma once

#include <ATen/core/Generator.h>

#include <string>

#include "tests/device/memory.h"
#include "tests/device/order.h"

namespace tutti::test_device {

// What the process has of the test device: libtorch knows one device of this kind in a process.
struct State {
  std::mutex mutex;
  Order order;
  Memory memory;
  int event_latency = 0;
  int64_t empty_cache_calls = 0;
};

State& state();

// Maps the memory and registers the test device with libtorch, once.
void install();

// Of draws on the device that name no generator.
const at::Generator& default_generator(int device);

// The calling thread knows more then: pinned memory opens.
void host_wait(Lock& lock, const Clock& clock, const std::string& cause);

// The allocator of device memory, and libtorch's CPU allocator as kernels see it.
c10::DeviceAllocator& device_allocator();
c10::Allocator& pinned_allocator();
void redirect_cpu_allocator();

// Device memory from its owner: `front` is the address of tensors.
c10::DataPtr device_memory(char* front, int device);

}  // namespace tutti::test_device
