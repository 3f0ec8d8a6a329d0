#include "training/optimizers/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tutti {
namespace {

constexpr int64_t kStagedAlignment = 256;  // of CUDA's allocations; kernels load whole vectors

bool is_set(const at::Tensor& flag) { return flag.defined() && flag.item<float>() != 0.0F; }

// Strides of dimensions of size 1 are ignored: the gradient of a 1x1 convolution may differ there.
bool same_strides(const at::Tensor& first, const at::Tensor& second) {
  if (first.sizes() != second.sizes()) return false;
  for (int64_t d = 0; d < first.dim(); ++d)
    if (first.size(d) > 1 && first.stride(d) != second.stride(d)) return false;
  return true;
}

int64_t padded_bytes(const at::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

// Also if other ranks have its rows.
bool is_updated(const ParamView& view) { return view.trained && view.grad.defined(); }

Shape mean_shape(Shape shape, const std::optional<int64_t>& mean_dim) {
  if (mean_dim) shape[static_cast<size_t>(*mean_dim)] = 1;
  return shape;
}

}  // namespace

Optimizer::Optimizer(const std::vector<ParamView>& views, Common common)
    : views_(views),
      common_(std::move(common)),
      lr_(common_.lr),
      steps_(at::zeros({std::ssize(views)}, at::kLong)) {
  rates_ = tutti::rates_of(common_, views);
  make_groups();
}

// Kernels are called once for all parameters with equal hyperparameters.
void Optimizer::make_groups() {
  groups_.clear();
  std::map<std::pair<size_t, double>, double> scales;  // by the order of group_lrs
  for (size_t i = 0; i < views_.size(); ++i) {
    const ParameterRates& rates = rates_[i];
    auto group = std::ranges::find_if(groups_, [&](const Group& candidate) {
      return candidate.weight_decay == rates.weight_decay && candidate.lr_scale == rates.lr_scale;
    });
    if (group == groups_.end())
      group = groups_.insert(groups_.end(), {rates.weight_decay, {}, rates.lr_scale});
    group->members.push_back(i);
    const bool is_plain = rates.lr_scale == 1.0;
    scales[{rates.group, is_plain ? -std::numeric_limits<double>::infinity() : -rates.lr_scale}] =
        rates.lr_scale;
  }
  if (scales.empty()) scales[{0, 0.0}] = 1.0;
  group_scales_.clear();
  for (const auto& [place, scale] : scales) group_scales_.push_back(scale);
}

void Optimizer::set_sum_over_shards(SumOverRanks sum) {
  sum_over_shards_ = std::move(sum);
  if (sum_over_shards_) views_changed();
}

std::vector<double> Optimizer::group_lrs() const {
  std::vector<double> lrs;
  for (const double scale : group_scales_) lrs.push_back(lr_ * scale);
  return lrs;
}

// State of other sizes stays as it is.
at::Tensor Optimizer::like_view(const at::Tensor& state, const ParamView& view) {
  if (!state.defined() || state.sizes() != view.tensor.sizes()) return state;
  if (same_strides(state, view.tensor) && state.scalar_type() == view.tensor.scalar_type()) return state;
  return new_state(view, 0.0, {}).copy_(state);
}

at::Tensor Optimizer::fresh_state(const NamedState& state, const ParamView& view) {
  const auto own = state.sizes_of ? state.sizes_of(view) : StateSizes();
  return view.trained && own ? new_state(view, state.value, *own) : at::Tensor();
}

at::Tensor Optimizer::new_state(const ParamView& view, double value, const StateSizes& own) {
  const at::Tensor like = view.tensor.detach();
  const Shape sizes = mean_shape(like.sizes().vec(), own.mean_dim);
  if (!view.offloaded_from)
    return own.mean_dim ? at::full(sizes, value, like.options()) : at::full_like(like, value);
  return staging_memory({c10::multiply_integers(sizes)}, like.scalar_type(), {*view.offloaded_from})
      .fill_(value)
      .as_strided(sizes, own.mean_dim ? c10::contiguous_strides(sizes) : c10::DimVector(like.strides()));
}

void Optimizer::follow(const Kept& kept) {
  TUTTI_ASSERT(kept.size() == views_.size(), "the views are not those that the optimizer is to follow");
  const at::NoGradGuard no_grad;
  const at::Tensor steps = at::zeros({std::ssize(views_)}, at::kLong);
  std::vector<ParameterRates> rates = tutti::rates_of(common_, views_);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    steps.data_ptr<int64_t>()[i] = this->steps(*kept[i]);
    rates[i] = rates_[*kept[i]];
  }
  for (NamedState& state : states_) {
    StateTensors followed;
    for (size_t i = 0; i < kept.size(); ++i)
      followed.push_back(kept[i] ? like_view((*state.tensors)[*kept[i]], views_[i])
                                 : fresh_state(state, views_[i]));
    *state.tensors = std::move(followed);
  }
  steps_ = steps;
  rates_ = std::move(rates);
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
  for (const NamedState& state : states_) {
    kept.emplace_back();
    for (const size_t i : call.members)
      if ((*state.tensors)[i].defined()) kept.back().push_back(&(*state.tensors)[i]);
  }
  if (!call.tensors.front().is_cpu()) return kept;
  kept.emplace_back();
  for (at::Tensor& tensor : call.tensors) kept.back().push_back(&tensor);
  return kept;
}

// The parts of an update have so many bytes, of whole parameters if ranks have to make the same parts.
int64_t Optimizer::staged_bytes(const ParamView& view) const {
  if (!sums_over_shards()) return padded_bytes(view.tensor);
  const auto bytes = c10::multiply_integers(view.shape) * static_cast<int64_t>(view.tensor.element_size());
  return (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

// Subclasses see all of it on the device.
void Optimizer::update_staged(const Call& all, const at::Tensor& grad_scale) {
  for (size_t next = 0; next < all.members.size();) {
    Call part{all.weight_decay, {}, {}, {}, all.found_inf, all.lr_scale};
    int64_t used = 0;
    do {
      part.members.push_back(all.members[next]);
      part.tensors.push_back(all.tensors[next]);
      part.grads.push_back(all.grads[next]);
      used += staged_bytes(views_[all.members[next++]]);
    } while (next < all.members.size() && used + staged_bytes(views_[all.members[next]]) <= kStagedBytes);
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
    auto copy = staged.begin();
    for (const auto& [host, device] : staged) at::Tensor(host).copy_(device, /*non_blocking=*/true);
    for (const NamedState& state : states_)
      for (const size_t i : members)
        if ((*state.tensors)[i].defined()) (*state.tensors)[i] = (copy++)->first;
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
  const std::size_t parameter_states = views_.front().tensor.is_cpu() ? 1 : 0;
  while (staging_.size() < states_.size() + parameter_states)
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
  Call call{group.weight_decay, {}, {}, {}, {}, group.lr_scale};
  call.tensors.reserve(group.members.size());
  call.grads.reserve(group.members.size());
  for (const size_t i : group.members) {
    const ParamView& view = views_[i];
    if (!is_updated(view) || (view.tensor.numel() == 0 && !sums_over_shards())) continue;
    TUTTI_ASSERT(view.whole() || !sums_over_shards() || sum_over_shards_,
                 std::string(name()) + " needs sums over the ranks that share a parameter");
    TUTTI_ASSERT(same_strides(view.grad, view.tensor),
                 view.name + ": gradient and parameter have different strides");
    call.members.push_back(i);
    call.tensors.push_back(view.tensor);
    call.grads.push_back(view.grad);
  }
  return call;
}

Optimizer::StateTensors& Optimizer::add_state(const std::string& name, double value, SizesOf sizes_of) {
  NamedState& state =
      states_.emplace_back(NamedState{name, std::make_unique<StateTensors>(), value, std::move(sizes_of)});
  for (const ParamView& view : views_) state.tensors->push_back(fresh_state(state, view));
  make_staging();
  return *state.tensors;
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

int64_t Optimizer::steps() const {
  const int64_t* steps = steps_.const_data_ptr<int64_t>();
  return views_.empty() ? 0 : *std::max_element(steps, steps + views_.size());
}

std::vector<OptimizerState> Optimizer::state() const {
  wait_for_host();
  std::vector<OptimizerState> all;
  for (size_t i = 0; i < views_.size(); ++i)
    if (views_[i].trained)
      all.push_back({&views_[i], "step", steps_.select(0, static_cast<int64_t>(i)), {}, {}});
  for (const NamedState& state : states_)
    for (size_t i = 0; i < views_.size(); ++i) {
      const at::Tensor& tensor = (*state.tensors)[i];
      if (!tensor.defined()) continue;
      const ParamView& view = views_[i];
      const auto own = state.sizes_of ? state.sizes_of(view) : std::nullopt;
      const auto mean_dim = own ? own->mean_dim : std::nullopt;
      all.push_back({&view, state.name, tensor, mean_shape(view.shape, mean_dim),
                     mean_dim ? view.placement.mean_over(*mean_dim) : view.placement});
    }
  return all;
}

}  // namespace tutti
