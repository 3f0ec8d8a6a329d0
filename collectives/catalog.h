#pragma once

#include <cstdint>

#include "recipe/section.h"

namespace tutti {

enum class Backend { kAuto, kLocal, kMpi, kNccl };

enum class Reduction {
  kOrdered,  // a balanced binary tree over rank order: the same bits on every backend, run and host layout
  kNative,   // the backend's own (MPI_Iallreduce, NCCL): fastest across hosts, bits may vary
};

// [collectives]
struct CollectiveSettings {
  Given<Backend> backend = Backend::kAuto;
  Given<Reduction> reduction = Reduction::kOrdered;
  double bucket_mb = 25;  // MiB

  static Kind<CollectiveSettings> kind();
  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_mb * (int64_t{1} << 20)); }
};

}  // namespace tutti
