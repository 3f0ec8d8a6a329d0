#pragma once

#include <cstdint>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// [collectives]
Catalog collectives_catalog();

enum class Backend { kAuto, kLocal, kMpi, kNccl };

enum class Reduction {
  kOrdered,  // a balanced binary tree over rank order: the same bits on every backend, run and host layout
  kNative,   // the backend's own (MPI_Iallreduce, NCCL): fastest across hosts, bits may vary
};

struct CollectiveSettings {
  Backend backend = Backend::kAuto;
  Reduction reduction = Reduction::kOrdered;
  int64_t bucket_bytes = int64_t{25} << 20;

  static CollectiveSettings read(const Setting& section);
};

}  // namespace tutti
