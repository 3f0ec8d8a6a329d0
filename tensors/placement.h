#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tensors/rank_topology.h"

namespace tutti {

using Shape = std::vector<int64_t>;

// Indices [offset, offset + extent) of each dimension of a tensor. The region of a scalar has no dimensions.
struct TensorRegion {
  Shape offset;
  Shape extent;

  bool operator==(const TensorRegion&) const = default;
};

TensorRegion whole_region(at::IntArrayRef shape);
// The piece of a rank along `dim`: ceil(extent / size) indices each, the last pieces fewer or none.
TensorRegion split(TensorRegion region, int64_t dim, const AxisRank& rank);
// The region of a tensor, as a view.
at::Tensor narrowed(const at::Tensor& whole, const TensorRegion& region);

// The placement of a tensor on the ranks of one axis.
struct AxisPlacement {
  enum class Kind : uint8_t {
    kReplicated,  // each rank has all numbers
    kSplit,       // each rank has a piece along `dim`
    kPartialSum,  // each rank has a summand of all numbers: gradients before their reduction
  };
  Kind kind = Kind::kReplicated;
  int64_t dim = 0;

  bool operator==(const AxisPlacement&) const = default;
};

// The placement of a tensor on all ranks, by axis: B, S and P of OneFlow (Yuan et al. 2021,
// arXiv:2110.15032).
struct Placement {
  std::array<AxisPlacement, kAxes> axes = {};

  const AxisPlacement& on(Axis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  // True if ranks have whole slices of dim 0.
  bool has_whole_rows() const;
  // The placement of the mean over `dim`, in which `dim` has size 1 and all ranks have all numbers of `dim`.
  Placement mean_over(int64_t dim) const;

  bool operator==(const Placement&) const = default;
};

// The placement of parameters: rows of dim 0, split over the axis kShard; of a scalar, replicated.
Placement row_placement(at::IntArrayRef shape);

// The region of a rank in a tensor of this shape; of a partial sum, all numbers.
TensorRegion region_of(at::IntArrayRef shape, const Placement& placement, const Share& share);
// This rank among the ranks that have the same region. Asserts that the tensor is no partial sum.
AxisRank copy_of(const Placement& placement, const Share& share);

}  // namespace tutti
