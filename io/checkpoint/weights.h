#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace tutti {

// Reads initial weights by parameter name from a .safetensors file, an .h5 file (datasets at the root or in
// the group "model"), or a checkpoint's folder. Throws UserError with the file.
std::map<std::string, at::Tensor> read_weights(const std::string& path);

}  // namespace tutti
