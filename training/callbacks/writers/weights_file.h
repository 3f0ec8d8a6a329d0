#pragma once

#include <c10/core/ScalarType.h>

#include <functional>
#include <optional>
#include <string>

#include "runtime/disk.h"
#include "training/state.h"

namespace tutti {

// Writes the weights and buffers of evaluations as a safetensors file, by rank 0; every rank must call.
// Readers never see a partial file. `precision`: of the floats in the file, if not their own. A failure is a
// warning on stderr and does not end the training. `name_in_file`: of a tensor by its name in the model; "" =
// left out; absent: the same name.
using NameInFile = std::function<std::string(const std::string& name)>;
void write_weights_file(const State& state, Disk& disk, const std::string& path,
                        std::optional<at::ScalarType> precision = std::nullopt,
                        const NameInFile& name_in_file = {});

}  // namespace tutti
