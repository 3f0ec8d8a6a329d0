#include "training/step_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "models/step_rows.h"
#include "runtime/error.h"
#include "tensors/memory/meter.h"

namespace tutti {

void StepRows::begin_pass() {
  drop();
  gathered_ = false;
  loss_weight_ = 0;
}

void StepRows::drop() {
  mine_.clear();
  rows_ = at::Tensor();
}

void StepRows::add(const at::Tensor& rows, double loss_weight) {
  if (!rows.defined() || rows.dim() != 2 || rows.scalar_type() != at::kFloat)
    throw UserError("the model's rows: expected float32 [samples, numbers]");
  mine_.push_back(rows);
  loss_weight_ += loss_weight;
}

// Two sums: of a few numbers, so that all ranks know how many rows there are, and of the rows.
bool StepRows::gather(bool out_of_memory) {
  const at::Tensor mine = out_of_memory || mine_.empty() ? at::Tensor() : at::cat(mine_);
  mine_.clear();
  const MemoryScopePause unlimited;
  const auto rank = static_cast<std::size_t>(state_.services->rank());
  const int64_t world = state_.services->world();
  std::vector<double> facts(static_cast<std::size_t>(2 * world));  // of each rank: samples, numbers of each
  if (mine.defined()) {
    facts[2 * rank] = static_cast<double>(mine.size(0));
    facts[2 * rank + 1] = static_cast<double>(mine.size(1));
  }
  facts.push_back(loss_weight_);
  facts.push_back(out_of_memory ? 1 : 0);
  const at::Tensor sums = at::tensor(facts, at::kDouble);
  gathered_ = true;
  state_.services->sum_over_ranks(sums);
  loss_weight_ = sums[-2].item<double>();
  if (sums[-1].item<double>() > 0) return false;
  const at::Tensor counts = sums.narrow(0, 0, 2 * world).view({world, 2}).to(at::kLong);
  first_ = counts.select(1, 0).narrow(0, 0, state_.services->rank()).sum().item<int64_t>();
  rows_ = world == 1 ? mine : sum_rows(mine, counts);
  return true;
}

at::Tensor StepRows::sum_rows(const at::Tensor& mine, const at::Tensor& counts) {
  const int64_t all = counts.select(1, 0).sum().item<int64_t>(),
                width = counts.select(1, 1).max().item<int64_t>();
  const at::Tensor rows = at::zeros({all, width});
  if (mine.defined()) rows.narrow(0, first_, mine.size(0)).copy_(mine);
  state_.services->sum_over_ranks(rows.view({-1}));
  return rows.to(state_.device.where);
}

Batch StepRows::add_to(const Batch& microbatch, int64_t first) const {
  return with_step_rows(microbatch, rows_, first_ + first);
}

}  // namespace tutti
