#include "tensors/cuda/device.h"

#include <cuda_runtime.h>

namespace tutti {
namespace {

// cudaMemGetInfo needs `index` as the current device; restores the caller's device.
CudaDevice describe(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return {};
  CudaDevice device{properties.name, properties.major, properties.minor, 0, 0};
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    device.free_bytes = static_cast<int64_t>(free_bytes);
    device.memory_bytes = static_cast<int64_t>(total_bytes);
  }
  return device;
}

}  // namespace

std::vector<CudaDevice> cuda_devices() {
  int count = 0;
  int current = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || cudaGetDevice(&current) != cudaSuccess) return {};
  std::vector<CudaDevice> devices;
  for (int index = 0; index < count; ++index) devices.push_back(describe(index));
  cudaSetDevice(current);
  return devices;
}

}  // namespace tutti
