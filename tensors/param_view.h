#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "tensors/placement.h"

namespace tutti {

// A rank's piece of a parameter: `region` of a tensor of `shape`. Optimizers, algorithms, callbacks and
// checkpoints see parameters only so. Unsharded, the region is the whole.
struct ParamView {
  std::string name;     // "layer1.0.conv1.weight"
  Shape shape;          // of the whole tensor
  Placement placement;  // of the whole tensor on the ranks
  TensorRegion region;  // of this piece in the whole tensor
  at::Tensor tensor;    // the piece, sizes = region.extent; a leaf, which requires grad if trained
  at::Tensor grad;  // the reduced gradient of the piece, strides equal to `tensor`'s; undefined before the
                    // first step, on all ranks alike, also on ranks without rows
  bool trained = true;  // false: never; optimizers have no state for it
  // Where optimizers update the piece, if pinned memory of the host has their state, and maybe `tensor` too.
  std::optional<c10::Device> offloaded_from;
  bool owned = true;  // false: a copy of another rank's piece, as of a scalar

  bool whole() const { return region.extent == shape; }
  // True if this rank's numbers count in sums over ranks. Sums (tensors/norms.h) are of whole rows: asserts
  // that the piece has whole rows.
  bool counts_in_sums() const;
  // This rank's summand in a sum over ranks of numbers of the piece, such as `grad`; undefined: none.
  at::Tensor part_of_sum(const at::Tensor& numbers) const;
};

// The unsharded view of a parameter.
ParamView whole_view(std::string name, at::Tensor tensor);

// The view of a rank that has a share of the parameter (row_placement): a copy of its region, dense and with
// the order of dimensions in memory of `tensor`. Of the ranks with one region the first of kShard owns the
// numbers.
ParamView shared_view(std::string name, const at::Tensor& tensor, const Share& share);

}  // namespace tutti
