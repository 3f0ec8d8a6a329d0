#include "training/optimizers/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

constexpr int64_t kStagedAlignment = 256;  // of CUDA's allocations; kernels load whole vectors

bool is_set(const at::Tensor& flag) { return flag.defined() && flag.item<float>() != 0.0F; }

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& p) { return matches_pattern(p, name); });
}

// Strides of dimensions of size 1 are ignored: the gradient of a 1x1 convolution may differ there.
bool same_strides(const at::Tensor& one, const at::Tensor& other) {
  if (one.sizes() != other.sizes()) return false;
  for (int64_t d = 0; d < one.dim(); ++d)
    if (one.size(d) > 1 && one.stride(d) != other.stride(d)) return false;
  return true;
}

int64_t padded_bytes(const at::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

// Also if other ranks have its rows.
bool is_updated(const ParamView& view) { return view.trained && view.grad.defined(); }

at::Tensor fresh_state(const ParamView& view) {
  const at::Tensor& tensor = view.tensor;
  if (!view.trained) return {};
  if (!view.offloaded_from) return at::zeros_like(tensor.detach());
  return staging_memory({tensor.numel()}, tensor.scalar_type(), {*view.offloaded_from})
      .zero_()
      .as_strided(tensor.sizes(), tensor.strides());
}

at::Tensor like_view(const at::Tensor& state, const ParamView& view) {
  if (!state.defined()) return fresh_state(view);
  if (same_strides(state, view.tensor) && state.scalar_type() == view.tensor.scalar_type()) return state;
  return fresh_state(view).copy_(state);
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  size_t p = 0, n = 0, after_star = std::string::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (after_star != std::string::npos) {
      p = after_star;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

Optimizer::Optimizer(const std::vector<ParamView>& views, Common common)
    : views_(views),
      common_(std::move(common)),
      lr_(common_.lr),
      steps_(at::zeros({std::ssize(views)}, at::kLong)) {
  for (const ParamView& view : views) decays_.push_back(decays(view));
  make_groups();
}

bool Optimizer::decays(const ParamView& view) const {
  return common_.weight_decay == 0.0 || !matches_any(common_.no_decay, view.name);
}

void Optimizer::make_groups() {
  Group decayed{common_.weight_decay, {}};
  Group plain{0.0, {}};
  for (size_t i = 0; i < views_.size(); ++i) (decays_[i] ? decayed : plain).members.push_back(i);
  groups_.clear();
  for (Group* group : {&decayed, &plain})
    if (!group->members.empty()) groups_.push_back(std::move(*group));
}

void Optimizer::follow(const Kept& kept) {
  TUTTI_ASSERT(kept.size() == views_.size(), "the views are not those that the optimizer is to follow");
  const at::NoGradGuard no_grad;
  const at::Tensor steps = at::zeros({std::ssize(views_)}, at::kLong);
  std::vector<bool> decayed;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) steps.data_ptr<int64_t>()[i] = this->steps(*kept[i]);
    decayed.push_back(kept[i] ? decays_[*kept[i]] : decays(views_[i]));
  }
  for (auto& [name, tensors] : states_) {
    StateTensors followed;
    for (size_t i = 0; i < kept.size(); ++i)
      followed.push_back(kept[i] ? like_view((*tensors)[*kept[i]], views_[i]) : fresh_state(views_[i]));
    *tensors = std::move(followed);
  }
  steps_ = steps;
  decays_ = std::move(decayed);
  make_groups();
  make_staging();
  views_changed();
}

void Optimizer::step(const at::Tensor& grad_scale, const at::Tensor& found_inf) {
  const bool unseen = found_inf.defined() && !found_inf.is_cpu() && skips_on_device();
  if (!unseen && is_set(found_inf)) return;
  const at::NoGradGuard no_grad;
  count(1);
  for (const Group& group : groups_) {
    Call call = call_of(group);
    if (unseen) call.found_inf = found_inf;
    if (call.members.empty()) continue;
    if (staging_.empty())
      update(std::move(call), grad_scale);
    else
      update_staged(call, grad_scale);
  }
}

// The tensors of a call that are not where it computes: of each state, then the parameters, by member.
std::vector<std::vector<at::Tensor*>> Optimizer::kept_on_host(Call& call) {
  std::vector<std::vector<at::Tensor*>> kept;
  for (auto& [name, tensors] : states_) {
    kept.emplace_back();
    for (const size_t i : call.members) kept.back().push_back(&(*tensors)[i]);
  }
  if (!call.tensors.front().is_cpu()) return kept;
  kept.emplace_back();
  for (at::Tensor& tensor : call.tensors) kept.back().push_back(&tensor);
  return kept;
}

// Subclasses see all of it on the device.
void Optimizer::update_staged(const Call& all, const at::Tensor& grad_scale) {
  for (size_t next = 0; next < all.members.size();) {
    Call part{all.weight_decay, {}, {}, {}, all.found_inf};
    int64_t used = 0;
    do {
      part.members.push_back(all.members[next]);
      part.tensors.push_back(all.tensors[next]);
      part.grads.push_back(all.grads[next]);
      used += padded_bytes(all.tensors[next++]);
    } while (next < all.members.size() && used + padded_bytes(all.tensors[next]) <= kStagedBytes);
    std::vector<std::pair<at::Tensor, at::Tensor>> staged;  // on the host, on the device
    const auto kept = kept_on_host(part);
    for (size_t k = 0; k < kept.size(); ++k) {
      int64_t at = 0;
      for (at::Tensor* const tensor : kept[k]) {
        const at::Tensor host = tensor->detach();
        const at::Tensor place = staging_[k].narrow(0, at, static_cast<int64_t>(host.nbytes()));
        at += padded_bytes(host);
        *tensor = place.view(host.scalar_type()).as_strided(host.sizes(), host.strides());
        tensor->copy_(host, /*non_blocking=*/true);
        staged.emplace_back(host, *tensor);
      }
    }
    const auto members = part.members;
    update(std::move(part), grad_scale);
    auto one = staged.begin();
    for (const auto& [host, device] : staged) at::Tensor(host).copy_(device, /*non_blocking=*/true);
    for (auto& [name, tensors] : states_)
      for (const size_t i : members) (*tensors)[i] = (one++)->first;
  }
  staged_ = StreamOrder::record({staging_.front().device()});
}

// The largest part of parameters that an update brings at a time.
void Optimizer::make_staging() {
  staging_.clear();
  int64_t all = 0, largest = 0;
  for (const ParamView& view : views_) {
    if (!view.offloaded_from) return;
    if (!view.trained) continue;
    all += padded_bytes(view.tensor);
    largest = std::max(largest, padded_bytes(view.tensor));
  }
  if (all == 0) return;
  const int64_t bytes = std::max(largest, std::min(all, kStagedBytes));
  const std::size_t of_parameters = views_.front().tensor.is_cpu() ? 1 : 0;
  while (staging_.size() < states_.size() + of_parameters)
    staging_.push_back(at::empty({bytes}, Device{*views_.front().offloaded_from}.options(at::kByte)));
}

at::Tensor Optimizer::in_update(const ParamView& view, const at::Tensor& tensor) {
  return view.offloaded_from ? tensor.to(*view.offloaded_from, /*non_blocking=*/true) : tensor;
}

void Optimizer::take_back() { count(-1); }

void Optimizer::count(int64_t updates) {
  int64_t* steps = steps_.data_ptr<int64_t>();
  for (size_t i = 0; i < views_.size(); ++i)
    if (is_updated(views_[i])) steps[i] += updates;
}

Optimizer::Call Optimizer::call_of(const Group& group) const {
  Call call{group.weight_decay, {}, {}, {}};
  call.tensors.reserve(group.members.size());
  call.grads.reserve(group.members.size());
  for (const size_t i : group.members) {
    const ParamView& view = views_[i];
    if (!is_updated(view) || view.tensor.numel() == 0) continue;
    TUTTI_ASSERT(same_strides(view.grad, view.tensor),
                 view.name + ": gradient and parameter have different strides");
    call.members.push_back(i);
    call.tensors.push_back(view.tensor);
    call.grads.push_back(view.grad);
  }
  return call;
}

Optimizer::StateTensors& Optimizer::add_state(const std::string& name) {
  auto tensors = std::make_unique<StateTensors>();
  for (const ParamView& view : views_) tensors->push_back(fresh_state(view));
  states_.emplace_back(name, std::move(tensors));
  make_staging();
  return *states_.back().second;
}

Elementwise Optimizer::make_elementwise(size_t lists) const {
  std::vector<at::Tensor> tensors;
  for (const ParamView& view : views_) tensors.push_back(view.tensor);
  return {lists, tensors, views_.empty() ? std::nullopt : views_.front().offloaded_from};
}

void Optimizer::shrink(const std::vector<at::Tensor>& tensors, double factor, const at::Tensor& found_inf) {
  if (!found_inf.defined()) return at::_foreach_mul_(tensors, factor);
  at::_foreach_mul_(tensors, at::full_like(found_inf, factor).masked_fill_(found_inf.ne(0), 1.0));
}

std::vector<at::Tensor> Optimizer::pick(const StateTensors& tensors, const std::vector<size_t>& members) {
  std::vector<at::Tensor> picked;
  picked.reserve(members.size());
  for (const size_t i : members) picked.push_back(tensors[i]);
  return picked;
}

std::vector<std::pair<std::string, ExactSum>> Optimizer::squares(size_t) const { return {}; }

double Optimizer::weight_decay_of(size_t view) const { return decays_[view] ? common_.weight_decay : 0.0; }

int64_t Optimizer::steps() const {
  const int64_t* steps = steps_.const_data_ptr<int64_t>();
  return views_.empty() ? 0 : *std::max_element(steps, steps + views_.size());
}

std::vector<OptimizerState> Optimizer::state() const {
  wait_for_host();
  std::vector<OptimizerState> all;
  for (size_t i = 0; i < views_.size(); ++i)
    if (views_[i].trained) all.push_back({&views_[i], "step", steps_.select(0, static_cast<int64_t>(i))});
  for (const auto& [name, tensors] : states_)
    for (size_t i = 0; i < views_.size(); ++i)
      if (views_[i].trained) all.push_back({&views_[i], name, (*tensors)[i]});
  return all;
}

}  // namespace tutti
