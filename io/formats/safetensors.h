#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "runtime/disk.h"

namespace tutti {

// A file of named tensors in the safetensors format (huggingface.co/docs/safetensors): 8 bytes with the
// header's length, a JSON header, the tensors' bytes.
struct Safetensors {
  std::map<std::string, at::Tensor> tensors;  // copies, on the CPU
  std::map<std::string, std::string> metadata;
};

// Throws UserError that names the file, the tensor and the offset of what is wrong.
Safetensors read_safetensors(const std::string& path);

// Tensors are written as contiguous, in name order. Throws OperatingError (disk full, ...).
void write_safetensors(Disk& disk, const std::string& path, const Safetensors& content);

}  // namespace tutti
