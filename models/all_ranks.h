#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tutti {

// The ranks of a pass, for models and losses that compute with the samples of all ranks (contrastive losses):
// see Model::uses_all_ranks. This base is a run of one rank.
class AllRanks {
 public:
  virtual ~AllRanks() = default;
  virtual int rank() const { return 0; }
  virtual int world() const { return 1; }
  // Sums numbers of the host, flat, over all ranks, in place. Without gradients.
  virtual void sum_over_ranks(const at::Tensor& /*numbers*/) {}
};

// All ranks call these alike, in one order, with tensors of one dtype, float or integer. Gradients pass: a
// rank gets the gradient of the losses of all ranks together, by its own tensor. Backward sums over ranks
// too, so the result must have a part in the loss of every rank. Deterministic, since sums over ranks have a
// fixed order. On a device numbers pass through the host, which waits.

// The sum over ranks of tensors of one shape.
at::Tensor sum_of_all(AllRanks& ranks, const at::Tensor& mine);

struct RowsOfAll {
  at::Tensor rows;    // of all ranks, in the order of ranks
  int64_t first = 0;  // the place of this rank's first row among all rows
};

// Gathers rows [n, ...]; n may differ between ranks. Costs as much as a sum of all rows.
RowsOfAll rows_of_all(AllRanks& ranks, const at::Tensor& mine);

// The access of a model or a loss to the ranks of the pass.
class RanksOfPass {
 public:
  // Null: this rank alone.
  void set(AllRanks* ranks) const { ranks_ = ranks; }
  AllRanks& get() const { return ranks_ ? *ranks_ : alone_; }

 private:
  mutable AllRanks* ranks_ = nullptr;
  mutable AllRanks alone_;
};

}  // namespace tutti
