#pragma once

#include <cstdint>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// [collectives]
Catalog collectives_catalog();

enum class Backend { kAuto, kLocal, kMpi, kNccl };

struct CollectiveSettings {
  Backend backend = Backend::kAuto;
  int64_t bucket_bytes = int64_t{25} << 20;

  static CollectiveSettings read(const Setting& section);
};

}  // namespace tutti
