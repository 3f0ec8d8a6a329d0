#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// Tensors of several files, each file with its own names.
class WeightsSet final : public TensorSource {
 public:
  // Takes from a file the tensors that are named.
  void add(std::unique_ptr<TensorSource> file, const std::vector<std::string>& names);

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override;

 private:
  std::vector<std::unique_ptr<TensorSource>> files_;
  std::map<std::string, const TensorSource*> homes_;
};

// The files of a set, with the names of their tensors: "weight_map" of an index file (Hugging Face's
// model.safetensors.index.json). Throws UserError with the file.
std::map<std::string, std::vector<std::string>> read_weights_index(const Disk& disk, const std::string& path);

}  // namespace tutti
