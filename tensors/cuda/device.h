#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// Properties of a GPU.
struct CudaDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability
  int minor = 0;
  int64_t memory_bytes = 0;  // total
  int64_t free_bytes = 0;
};

// The GPUs visible to this process, in CUDA's order; empty without a driver. Defined in libtutti_cuda.so.
std::vector<CudaDevice> cuda_devices();

}  // namespace tutti
