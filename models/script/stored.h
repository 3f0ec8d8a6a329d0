#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <mutex>
#include <string>

#include "models/script/code.h"

namespace tutti::script {

// A file of torch.jit.save. Throws UserError.
c10::IValue load(const std::string& path);

// The tensors of a file's modules by dotted name. Each is given away once, so that their memory is not needed
// in training; then the file is read again.
class Stored {
 public:
  Stored(std::string path, const c10::IValue& module) : path_(std::move(path)) { collect(module, ""); }
  // Thread-safe.
  void read(const std::string& name, at::Tensor& to);

 private:
  void collect(const c10::IValue& module, const std::string& prefix);

  std::string path_;
  std::map<std::string, at::Tensor> tensors_;
  std::mutex mutex_;
};

}  // namespace tutti::script
