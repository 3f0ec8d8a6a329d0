#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tensors/placement.h"

namespace tutti {

// Tensors by name, of a checkpoint, of a file with weights, or in memory. Only requested values are read.
class TensorSource {
 public:
  struct Entry {
    Shape shape;
    at::ScalarType dtype = at::kFloat;
  };
  using Entries = std::map<std::string, Entry>;

  static constexpr uint64_t kBufferBytes = uint64_t{4} << 20;

  virtual ~TensorSource() = default;

  const Entries& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }
  const Entry& at(const std::string& name) const;  // asserts that there is one

  // Copies a region into `to`, which has the region's shape, and any strides and dtype. Reads whole rows at
  // once, straight into the memory of `to` if strides and dtype allow, else through kBufferBytes; other
  // regions run by run. Throws OperatingError or UserError with the file.
  void read(const std::string& name, const TensorRegion& region, const at::Tensor& to) const;

  // Reads the tensor's numbers, in row-major order, from number `first` on. `to` holds whole numbers.
  virtual void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const = 0;

 protected:
  Entries entries_;

 private:
  void read_from(const std::string& name, std::size_t dim, int64_t first, const TensorRegion& region,
                 const at::Tensor& to) const;
  void fill(const std::string& name, int64_t first, const at::Tensor& to) const;
};

// Tensors in memory.
class MemoryTensors final : public TensorSource {
 public:
  explicit MemoryTensors(const std::map<std::string, at::Tensor>& tensors);
  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override;

 private:
  std::map<std::string, at::Tensor> tensors_;  // contiguous
};

// A hash over all tensors with names that begin with `prefix`, in name order: name, dtype, shape, bytes. The
// same for any world size and sharding.
uint64_t tensors_digest(const TensorSource& tensors, std::string_view prefix = "");

}  // namespace tutti
