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
  explicit StepRows(State& state);

  void begin_pass();
  // The rows of the next microbatch of this rank, and the weight of its loss. `part`: of the rank's parts of
  // the batch, where they are grains.
  void add(const at::Tensor& rows, double loss_weight, std::size_t part = 0);
  // Sums over ranks, once a pass; this rank may have no rows. `out_of_memory`: in the pass so far. False if
  // that is so on any rank: there are no rows then, and the attempt is aborted.
  bool gather(bool out_of_memory);
  bool gathered() const { return gathered_; }
  void drop();  // frees the rows

  // Of all ranks.
  double loss_weight() const { return loss_weight_; }
  // For rows_of_step. `first`: the place of its first sample among those of the part.
  Batch add_to(const Batch& microbatch, int64_t first, std::size_t part = 0) const;

 private:
  // Of this rank: its samples, or a grain.
  struct Part {
    int64_t place = 0;  // among the parts of all ranks, from gather() on
    std::vector<at::Tensor> rows = {};
    double loss_weight = 0;
    int64_t first = 0;  // of its rows among those of all ranks
  };
  at::Tensor sum_rows(const std::vector<at::Tensor>& mine, const at::Tensor& counts) const;

  State& state_;
  const RankTopology place_;
  std::vector<Part> parts_;
  bool gathered_ = false;
  at::Tensor rows_;  // of all ranks
  double loss_weight_ = 0;
};

}  // namespace tutti
