#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// A tensor of a file that is written, whole when it is its turn.
using WrittenTensor = std::function<at::Tensor(const std::string& name)>;

// Writes a file that torch.load reads: an OrderedDict of tensors by name, below these keys, the outermost
// first ({"state", "model"}: Composer's). `read` is called for one tensor after the other; needs memory for
// one. The file appears whole. Throws OperatingError.
void write_torch_file(Disk& disk, const std::string& path, const TensorSource::Entries& tensors,
                      const std::vector<std::string>& keys, const WrittenTensor& read);

// Writes safetensors files of at most so many bytes (a larger tensor has a file of its own), and, if there
// are several, the index that transformers reads: "model.safetensors", or "model-00001-of-00003.safetensors"
// and "model.safetensors.index.json". Returns the number of files. Needs memory for one tensor. Throws
// OperatingError.
std::size_t write_safetensors_set(Disk& disk, const std::string& path, const TensorSource::Entries& tensors,
                                  uint64_t most_bytes, const WrittenTensor& read);

}  // namespace tutti
