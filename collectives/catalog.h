#pragma once

#include <cstdint>

#include "recipe/section.h"

namespace tutti {

enum class Backend { kAuto, kLocal, kMpi, kNccl };

// [collectives]
struct CollectiveSettings {
  Given<Backend> backend = Backend::kAuto;
  double bucket_mb = 25;  // MiB

  static Kind<CollectiveSettings> kind();
  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_mb * (int64_t{1} << 20)); }
};

}  // namespace tutti
