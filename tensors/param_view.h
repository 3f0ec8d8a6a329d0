#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "tensors/placement.h"

namespace tutti {

// A rank's piece of a parameter: rows [offset[0], offset[0] + extent[0]) of a tensor of `shape`. Optimizers,
// algorithms, callbacks and checkpoints see parameters only so. Unsharded, extent equals shape.
struct ParamView {
  std::string name;   // "layer1.0.conv1.weight"
  Shape shape;        // of the whole tensor
  Shape offset;       // of this piece in the whole tensor; zeros if unsharded
  Shape extent;       // of this piece
  at::Tensor tensor;  // the piece, sizes = extent; a leaf, which requires grad if trained
  at::Tensor grad;    // the reduced gradient of the piece, strides equal to `tensor`'s; undefined before the
                      // first step, on all ranks alike, also on ranks without rows
  bool trained = true;  // false: never; optimizers have no state for it
  // Where optimizers update the piece, if pinned memory of the host has their state, and maybe `tensor` too.
  std::optional<c10::Device> offloaded_from;
  bool owned = true;  // false: a copy of a scalar of another rank, which sums over ranks leave out

  bool whole() const { return extent == shape; }
  // This rank's summand in a sum over ranks of numbers of the piece, such as `grad`; undefined: none.
  at::Tensor part_of_sum(const at::Tensor& numbers) const { return owned ? numbers : at::Tensor(); }
};

// The unsharded view of a parameter.
ParamView whole_view(std::string name, at::Tensor tensor);

// Rows [begin, end) of dim 0 in piece `index` of `pieces`: ceil(rows / pieces) rows each, the last pieces
// fewer or none. A scalar counts as one row.
struct Rows {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};
Rows rows_of_piece(int64_t rows, int pieces, int index);
Rows rows_of_piece(const at::Tensor& tensor, int pieces, int index);

// The view of a rank that has a share of the parameter: a copy of its rows, dense and with the order of
// dimensions in memory of `tensor`. All ranks copy a scalar; the first rank owns it.
ParamView shared_view(std::string name, const at::Tensor& tensor, const Share& share);

}  // namespace tutti
