#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "tensors/tree.h"
#include "training/state.h"

namespace tutti {

// Gathers the rows that the samples of a step, or of a batch of an evaluation, are compared by
// (models/step_rows.h).
class StepRows {
 public:
  explicit StepRows(State& state) : state_(state) {}

  void begin_pass();
  // The rows of the next microbatch of this rank, and the weight of its loss.
  void add(const at::Tensor& rows, double loss_weight);
  // Sums over ranks, once a pass; this rank may have no rows. `out_of_memory`: in the pass so far. False if
  // that is so on any rank: there are no rows then, and the attempt is aborted.
  bool gather(bool out_of_memory);
  bool gathered() const { return gathered_; }
  void drop();  // frees the rows

  // Of all ranks.
  double loss_weight() const { return loss_weight_; }
  // For rows_of_step. `first`: the place of its first sample among this rank's samples.
  Batch add_to(const Batch& microbatch, int64_t first) const;

 private:
  at::Tensor sum_rows(const at::Tensor& mine, const at::Tensor& counts);

  State& state_;
  std::vector<at::Tensor> mine_;
  bool gathered_ = false;
  at::Tensor rows_;    // of all ranks
  int64_t first_ = 0;  // of this rank among them
  double loss_weight_ = 0;
};

}  // namespace tutti
