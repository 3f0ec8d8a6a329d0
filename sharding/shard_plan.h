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

// How the parameters of a bucket are cut over ranks: each by rows of dim 0 (rows_of_piece), scalars belong to
// the first rank. A rank's part has its rows of each slot, one behind the other, in the order of the slots.
// Depends on sizes and dtypes alone, so it is the same on every rank. `live_bytes`: only slots that begin
// before are cut; -1: all. Asserts that rows are outermost in memory (can_cut).
CutPtr cut_by_rows(const Bucket& bucket, const std::vector<at::Tensor>& parameters, int pieces,
                   int64_t live_bytes = -1);

// The rows of each slot in the part (flat) of a rank: the sizes of its ParamView, the strides of the
// parameter. A scalar's is an own zero on all ranks but the first. Slots at the end that are not in the part
// are left out.
std::vector<at::Tensor> rows_in_part(const at::Tensor& part, const Bucket& bucket,
                                     const std::vector<at::Tensor>& parameters, const Share& share);

// Sets the gradient of each parameter that has a slot in the part to its rows there, in the parameter's
// dtype; a scalar's is zero on all ranks but the first. `gradients`: one of each parameter.
void take_rows(const at::Tensor& part, const Bucket& bucket, const std::vector<at::Tensor>& parameters,
               const Share& share, std::vector<at::Tensor>& gradients);

// The bytes of each parameter in the part of a rank, by these names.
std::vector<DigestPart> names_in_part(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                                      const std::vector<std::string>& names, const Share& share);

// True if the rows of dim 0 of the tensor are contiguous pieces of its memory.
bool can_cut(const at::Tensor& tensor);

}  // namespace tutti
