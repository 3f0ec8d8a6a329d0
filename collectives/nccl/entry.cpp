#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <vector>

#include "collectives/device_entry.h"
#include "collectives/nccl/communicator.h"
#include "tensors/cuda/device.h"
#include "tensors/cuda/graph.h"

extern "C" int tutti_device_type() { return static_cast<int>(c10::DeviceType::CUDA); }

extern "C" int tutti_device_count() { return static_cast<int>(tutti::cuda_devices().size()); }

extern "C" const char* tutti_device_name(int device) {
  static const std::vector<tutti::CudaDevice> devices = tutti::cuda_devices();
  return devices.at(static_cast<std::size_t>(device)).name.c_str();
}

extern "C" void tutti_device_start(const char*) { at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); }

extern "C" void tutti_device_limit_memory(int device, int64_t bytes) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  const auto all = static_cast<double>(c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(index).second);
  const double fraction = bytes == 0 ? 1.0 : std::min(1.0, static_cast<double>(bytes) / all);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, index);
}

// libtorch's allocator reports allocations only when they are made.
extern "C" bool tutti_device_watch_memory(void (*)(int, std::size_t)) { return false; }

extern "C" tutti::DeviceGraph* tutti_device_make_graph(int) { return tutti::make_cuda_graph(); }

extern "C" void tutti_device_make_id(tutti::CommunicatorId* id) { *id = tutti::NcclCommunicator::make_id(); }

extern "C" tutti::Communicator* tutti_device_connect(const tutti::CommunicatorId* id, int device, int rank,
                                                     const std::vector<int>* ranks) {
  return new tutti::NcclCommunicator(*id, static_cast<c10::DeviceIndex>(device), rank,
                                     static_cast<int>(ranks->size()));
}
