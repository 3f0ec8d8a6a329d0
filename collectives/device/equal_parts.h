#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "collectives/cut.h"

namespace tutti {

// The parts of a cut, each padded to the size of the largest or a little more, side by side in rank order:
// NCCL takes equal parts only. The size depends on the cut alone. `equal` tensors are flat, with size()
// elements. Copies run on the current stream.
class EqualParts {
 public:
  // Elements of `item` bytes. `cut` must outlive this.
  EqualParts(const Cut& cut, std::size_t item);

  int64_t part_size() const { return part_size_; }
  int64_t size() const { return part_size_ * cut_.ranks(); }
  at::Tensor part(const at::Tensor& equal, int rank) const;

  // Copies the parts of some ranks from or to their places in the whole.
  using Ranks = std::function<bool(int rank)>;
  void take(const at::Tensor& whole, const Ranks& ranks, const at::Tensor& equal) const;
  void put(const at::Tensor& equal, const Ranks& ranks, const at::Tensor& whole) const;

 private:
  static constexpr int64_t kAlignment = 16;  // bytes
  template <class Copy>
  void for_each_run(const Ranks& ranks, Copy copy) const;

  const Cut& cut_;
  int64_t part_size_;
};

}  // namespace tutti
