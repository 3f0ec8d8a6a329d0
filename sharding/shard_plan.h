#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/cut.h"
#include "sharding/buckets.h"
#include "tensors/digests.h"
#include "tensors/param_view.h"

namespace tutti {

// Flat memory is cut by rows of dim 0, which are contiguous in memory, and no other way: this file asserts
// that parameters have row_placement and that rows are outermost in memory (can_cut). Scalars belong to the
// first rank. `parameters`: of the model, or tensors of their sizes, strides and dtypes; `views`: by
// parameter.

// Cuts the parameters of a bucket over ranks. A rank's part has its rows of each slot, in the order of the
// slots. The cut depends only on sizes, dtypes and placements, so all ranks have the same cut.
CutPtr cut_by_rows(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                   const std::vector<ParamView>& views, int pieces);

// Finds a rank's rows of a bucket in memory (flat, of the bucket's dtype).
class RowsOfRank {
 public:
  // The place of the rows: dense, as in cut_by_rows, or at their places in the whole bucket.
  enum class In { kPart, kWhole };
  RowsOfRank(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
             const std::vector<ParamView>& views, const Share& share, In in);

  // The rows of each slot, with the sizes of its ParamView and the strides of the parameter. A scalar is a
  // separate zero on all ranks but the first.
  std::vector<at::Tensor> rows(const at::Tensor& memory) const;

  // Sets the gradient of each parameter with a slot in the memory to its rows there, in the parameter's
  // dtype; the gradient of a scalar is zero on all ranks but the first. `gradients`: one per parameter.
  void take(const at::Tensor& memory, std::vector<at::Tensor>& gradients) const;

  // The bytes of each parameter, under these names.
  std::vector<DigestPart> parts(const std::vector<std::string>& names) const;

 private:
  struct Slot {
    std::size_t parameter = 0;
    at::ScalarType dtype = at::kFloat;  // of the parameter
    Shape sizes, strides;
    ElementRange place;
  };
  int64_t item_;  // bytes of an element
  bool first_;    // the rank with the scalars
  std::vector<Slot> slots_;
};

// True if the rows of dim 0 of the tensor are contiguous pieces of its memory.
bool can_cut(const at::Tensor& tensor);

}  // namespace tutti
