#include "models/step_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_copy.h>

namespace tutti {

constexpr const char* kRowsOfStep = "rows of the step";

at::Tensor rows_of_step(const Batch& batch, const at::Tensor& mine) {
  const TensorTree* all = batch.find(kRowsOfStep);
  if (!all) return mine;
  return at::index_copy((*all)["rows"], 0, (*all)["places"], mine);
}

at::Tensor places_in_step(const Batch& batch, const at::Tensor& mine) {
  const TensorTree* all = batch.find(kRowsOfStep);
  return all ? (*all)["places"] : at::arange(mine.size(0), mine.options().dtype(at::kLong));
}

// As arrays of the batch they may be other ones in each step of a graph of the device.
Batch with_step_rows(Batch batch, const at::Tensor& rows, int64_t first) {
  const auto options = rows.options().dtype(at::kLong);
  batch.set(
      kRowsOfStep,
      TensorTree::Children{{"rows", rows}, {"places", at::arange(first, first + batch.samples(), options)}});
  return batch;
}

}  // namespace tutti
