#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace tutti::exported {

// A file of torch.export.save: a program, and the values of its parameters, buffers and constants.
class Archive {
 public:
  // Throws UserError.
  explicit Archive(std::string path);
  ~Archive();
  Archive(const Archive&) = delete;

  const std::string& path() const { return path_; }
  std::string program() const;  // JSON
  // Where the values are in the file: equal for tensors that share values. "" without values.
  std::string place(const std::string& name) const;
  // Reads the values of a parameter, buffer or constant into a tensor of the host. Thread-safe. Throws
  // UserError.
  void read(const std::string& name, at::Tensor& to) const;

 private:
  class Contents;
  std::string path_;
  std::unique_ptr<Contents> contents_;
};

}  // namespace tutti::exported
