#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "runtime/disk.h"
#include "tensors/param_view.h"

namespace tutti {

// The content of a safetensors file (huggingface.co/docs/safetensors): 8 bytes with the header's length, a
// JSON header, the tensors' bytes.
struct Safetensors {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Where the tensors of a file lie: contiguous, in row-major order.
struct SafetensorsHeader {
  struct Entry {
    Shape shape;
    at::ScalarType dtype = at::kFloat;
    uint64_t at = 0;  // byte offset in the file
  };
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;
};

// Throws UserError with the file, the tensor and the offset of the error.
SafetensorsHeader read_safetensors_header(const std::string& path);

// Writes the tensors as contiguous, in name order. Throws OperatingError (disk full, ...).
void write_safetensors(Disk& disk, const std::string& path, const Safetensors& content);

}  // namespace tutti
