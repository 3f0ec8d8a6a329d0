#pragma once

#include <memory>
#include <string>

#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// Opens initial weights, by parameter name: a .safetensors file, an .h5 file (datasets at the root or in the
// group "model"), or a checkpoint's folder. Of a checkpoint a rank verifies its part of the files, as in
// verify_files. `disk` must outlive the weights. Throws UserError with the file.
std::unique_ptr<TensorSource> open_weights(const Disk& disk, const std::string& path, const Share& part = {});

}  // namespace tutti
