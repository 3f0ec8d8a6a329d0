#include "training/optimizers/partwise_optimizer.h"

#include <ATen/ops/add.h>
#include <ATen/ops/neg.h>

#include <algorithm>
#include <utility>

namespace tutti {

Optimizer::StateTensors& PartwiseOptimizer::add_list(const std::string& name, double value,
                                                     const SizesOf& sizes_of) {
  StateTensors& state = add_state(name, value, sizes_of);
  lists_.push_back(&state);
  return state;
}

void PartwiseOptimizer::add_scratch(size_t count, bool by_rows, size_t states) {
  scratch_ = count;
  states_ = std::max(states, lists_.size());
  by_rows_ = by_rows;
  PartwiseOptimizer::views_changed();
}

void PartwiseOptimizer::views_changed() {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < view_count(); ++i)
    if (view(i).trained) tensors.push_back(view(i).tensor.detach());
  const auto where = view_count() > 0 ? view(0).offloaded_from : std::nullopt;
  parts_.emplace(2 + states_, scratch_, tensors, by_rows_, where);
}

void PartwiseOptimizer::run(const Call& call, const std::vector<const StateTensors*>& states,
                            const InParts::Kernel& kernel) {
  InParts::Lists lists{call.tensors, call.grads};
  for (const StateTensors* state : states) lists.push_back(pick(*state, call.members));
  parts_->run(lists, kernel);
}

at::Tensor PartwiseOptimizer::descended(const InParts::Part& part, double decay, bool maximize,
                                        const at::Tensor& scratch) {
  at::Tensor into = scratch;
  if (!maximize && decay == 0.0) return part.lists[1];
  if (!maximize) return at::add_out(into, part.lists[1], part.lists[0], decay);
  at::neg_out(into, part.lists[1]);
  return decay == 0.0 ? into : into.add_(part.lists[0], decay);
}

void PartwiseOptimizer::update(Call call, const at::Tensor& grad_scale) {
  run(call, [&](const InParts::Part& part) {
    divide(part.lists[1], grad_scale);
    update_part(part, call, call.members[part.place]);
  });
}

}  // namespace tutti
