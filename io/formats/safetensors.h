#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
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

// The places of the tensors of a file: contiguous, in row-major order.
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

// Writes tensors one by one, in any order; in the file, tensors are contiguous and in name order. All members
// throw OperatingError (disk full, ...).
class SafetensorsFile {
 public:
  // `layout`: the file's tensors, of which only names, sizes and dtypes are used.
  SafetensorsFile(Disk& disk, const std::string& path, const Safetensors& layout);

  // Writes a tensor of the layout.
  void put(const std::string& name, const at::Tensor& tensor);
  // After all tensors: the file is durable.
  void finish();

 private:
  std::unique_ptr<WritableFile> file_;
  std::map<std::string, uint64_t> at_;  // byte offsets
};

void write_safetensors(Disk& disk, const std::string& path, const Safetensors& content);

}  // namespace tutti
