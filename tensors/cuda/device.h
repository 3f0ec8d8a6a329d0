#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// A GPU as its driver describes it.
struct CudaDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability
  int minor = 0;
  int64_t memory_bytes = 0;  // in all
  int64_t free_bytes = 0;    // now
};

// The GPUs that this process sees, in CUDA's order; none without a driver. In libtutti_cuda.so.
std::vector<CudaDevice> cuda_devices();

}  // namespace tutti
