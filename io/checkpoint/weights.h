#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace tutti {

// Initial weights by parameter name, from a .safetensors file, an .h5 file (datasets at its root or in its
// group "model"), or a checkpoint's folder. Throws UserError naming the file.
std::map<std::string, at::Tensor> read_weights(const std::string& path);

}  // namespace tutti
