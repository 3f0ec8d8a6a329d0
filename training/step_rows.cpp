#include "training/step_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "models/step_rows.h"
#include "runtime/error.h"
#include "tensors/memory/meter.h"

namespace tutti {

StepRows::StepRows(State& state) : state_(state), place_(state.topology) {
  for (int part = 0; part < (place_.has_grains ? place_.data_parts : 1); ++part)
    parts_.push_back({.place = place_.data_rank + part * place_.data_stride});
}

void StepRows::begin_pass() {
  drop();
  gathered_ = false;
  for (Part& part : parts_) part.loss_weight = 0;
}

void StepRows::drop() {
  for (Part& part : parts_) part.rows.clear();
  rows_ = at::Tensor();
}

void StepRows::add(const at::Tensor& rows, double loss_weight, std::size_t part) {
  if (!rows.defined() || rows.dim() != 2 || rows.scalar_type() != at::kFloat)
    throw UserError("the model's rows: expected float32 [samples, numbers]");
  parts_[part].rows.push_back(rows);
  parts_[part].loss_weight += loss_weight;
}

// Two sums: of a few numbers, so that all ranks know how many rows there are, and of the rows. The weights of
// grains are added in their order.
bool StepRows::gather(bool out_of_memory) {
  const int64_t places = place_.has_grains ? place_.data_world : state_.services->world();
  const int64_t weights = place_.has_grains ? places : 1;
  if (!place_.has_grains) parts_.front().place = state_.services->rank();
  std::vector<at::Tensor> mine;
  for (Part& part : parts_) {
    mine.push_back(out_of_memory || part.rows.empty() ? at::Tensor() : at::cat(part.rows));
    part.rows.clear();
  }
  const MemoryScopePause unlimited;
  // Of each place: samples, numbers of each; then weights, and whether memory ran out.
  std::vector<double> numbers(static_cast<std::size_t>(2 * places + weights + 1));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto place = static_cast<std::size_t>(parts_[i].place);
    if (parts_[i].place >= places) continue;
    if (mine[i].defined()) {
      numbers[2 * place] = static_cast<double>(mine[i].size(0));
      numbers[2 * place + 1] = static_cast<double>(mine[i].size(1));
    }
    numbers[static_cast<std::size_t>(2 * places) + (place_.has_grains ? place : 0)] = parts_[i].loss_weight;
  }
  numbers.back() = out_of_memory ? 1 : 0;
  const at::Tensor facts = at::tensor(numbers, at::kDouble);
  gathered_ = true;
  state_.services->sum_over_ranks(facts);
  loss_weight_ = 0;
  for (int64_t weight = 0; weight < weights; ++weight)
    loss_weight_ += facts[2 * places + weight].item<double>();
  if (facts[-1].item<double>() > 0) return false;
  const at::Tensor counts = facts.narrow(0, 0, 2 * places).view({places, 2}).to(at::kLong);
  for (Part& part : parts_)
    part.first = counts.select(1, 0).narrow(0, 0, std::min(part.place, places)).sum().item<int64_t>();
  rows_ = state_.services->world() == 1 && !place_.has_grains ? mine.front() : sum_rows(mine, counts);
  return true;
}

// Zeros of other ranks make 0.0 of -0.0, so a single rank adds zeros too.
at::Tensor StepRows::sum_rows(const std::vector<at::Tensor>& mine, const at::Tensor& counts) const {
  const int64_t all = counts.select(1, 0).sum().item<int64_t>(),
                width = counts.select(1, 1).max().item<int64_t>();
  const at::Tensor rows = at::zeros({all, width});
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i].defined()) rows.narrow(0, parts_[i].first, mine[i].size(0)).copy_(mine[i]);
  if (place_.has_grains) rows.add_(0.0);
  state_.services->sum_over_ranks(rows.view({-1}));
  return rows.to(state_.device.where);
}

Batch StepRows::add_to(const Batch& microbatch, int64_t first, std::size_t part) const {
  return with_step_rows(microbatch, rows_, parts_[part].first + first);
}

}  // namespace tutti
