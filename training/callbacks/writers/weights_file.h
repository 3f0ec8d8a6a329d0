#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "runtime/disk.h"
#include "training/state.h"

namespace tutti {

// Writes weights and buffers, those that evaluations use, as a safetensors file, by rank 0; every rank must
// call. Readers never see a partial file. `precision`: of the floats in the file, if not their own. A failure
// is a warning on stderr and does not end the training.
void write_weights_file(const State& state, Disk& disk, const std::string& path,
                        std::optional<at::ScalarType> precision = std::nullopt);

}  // namespace tutti
