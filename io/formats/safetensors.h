#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "runtime/disk.h"

namespace tutti {

// The content of a safetensors file (huggingface.co/docs/safetensors): 8 bytes with the header's length, a
// JSON header, the tensors' bytes.
struct Safetensors {
  std::map<std::string, at::Tensor> tensors;  // copies, on the CPU
  std::map<std::string, std::string> metadata;
};

// Throws UserError with the file, the tensor and the offset of the error.
Safetensors read_safetensors(const std::string& path);

// Writes the tensors as contiguous, in name order. Throws OperatingError (disk full, ...).
void write_safetensors(Disk& disk, const std::string& path, const Safetensors& content);

}  // namespace tutti
