#pragma once

#include <vector>

#include "job/names/composer_names.h"

namespace tutti {

// Composer's ParallelismConfig with every key of FSDPConfig and FSDP2Config (composer/utils/parallelism.py).
std::vector<ComposerName> fsdp_names();

}  // namespace tutti
