#include "sharding/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "runtime/probe/probe.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

bool requires_grad(const NamedParameter& named) { return named.parameter->tensor.requires_grad(); }

// A plan for the parameters that require gradients.
BucketPlan plan_for(const std::vector<NamedParameter>& parameters, int64_t bucket_bytes,
                    std::optional<at::ScalarType> dtype) {
  std::vector<at::Tensor> all;
  std::vector<std::size_t> trained;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    all.push_back(parameters[p].parameter->tensor);
    if (requires_grad(parameters[p])) trained.push_back(p);
  }
  return plan_buckets(all, trained, bucket_bytes, dtype);
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<NamedParameter> parameters, int64_t bucket_bytes, Full full,
                                 std::optional<at::ScalarType> dtype, bool grains)
    : parameters_(std::move(parameters)),
      plan_(plan_for(parameters_, bucket_bytes, dtype)),
      full_(std::move(full)),
      states_(parameters_.size()) {
  if (grains) grains_.emplace(parameters_.size());
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    for (const auto& slot : plan_.buckets[b].slots) {
      const std::size_t p = slot.parameter;
      states_[p].bucket = static_cast<int>(b);
      set_gradient_hook(parameters_[p].parameter->tensor, [this, p] { on_gradient(p); });
    }
  follow_frozen();
}

GradientBuckets::~GradientBuckets() {
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (has_place(p)) set_gradient_hook(parameters_[p].parameter->tensor, nullptr);
}

void GradientBuckets::bind(const std::vector<at::Tensor>& memory) {
  views_.assign(parameters_.size(), {});
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    for (const auto& slot : plan_.buckets[b].slots)
      views_[slot.parameter] =
          slot_view(memory[b], plan_.buckets[b], slot, parameters_[slot.parameter].parameter->tensor);
}

int64_t GradientBuckets::live_part(const Bucket& bucket) const {
  const auto item = static_cast<int64_t>(c10::elementSize(bucket.dtype));
  int64_t end = bucket.bytes;
  for (auto slot = bucket.slots.rbegin(); slot != bucket.slots.rend(); ++slot) {
    if (requires_grad(parameters_[slot->parameter])) {
      if (end < bucket.bytes) TUTTI_PROBE("bucket: the end of a bucket is frozen, and not reduced");
      return end;
    }
    end = slot->offset * item;
  }
  return 0;
}

void GradientBuckets::follow_frozen() {
  live_bytes_.clear();
  for (const Bucket& bucket : plan_.buckets) {
    live_bytes_.push_back(live_part(bucket));
    for (const BucketSlot& slot : bucket.slots)
      states_[slot.parameter].live =
          slot.offset * static_cast<int64_t>(c10::elementSize(bucket.dtype)) < live_bytes_.back();
  }
}

std::vector<std::vector<DigestPart>> GradientBuckets::parts() const {
  std::vector<std::vector<DigestPart>> parts;
  for (const auto& bucket : plan_.buckets) {
    auto& named = parts.emplace_back();
    for (const auto& slot : bucket.slots) {
      if (!states_[slot.parameter].live) continue;
      const NamedParameter& owner = parameters_[slot.parameter];
      const auto item = static_cast<int64_t>(c10::elementSize(bucket.dtype));
      const int64_t begin = slot.offset * item;
      named.push_back({owner.name, begin, begin + owner.parameter->tensor.numel() * item});
    }
  }
  return parts;
}

void GradientBuckets::begin_pass() {
  last_ = false;
  if (grains_) grains_->clear();
  missing_.assign(plan_.buckets.size(), 0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!has_place(p)) continue;
    states_[p].used = states_[p].filled = states_[p].finished = false;
    parameters_[p].parameter->tensor.mutable_grad() = at::Tensor();
    if (states_[p].live) ++missing_[states_[p].bucket];
  }
}

void GradientBuckets::begin_portion(int64_t index, bool last) {
  portion_ = index;
  last_ = last;
  if (last) begin_last_portion();
}

void GradientBuckets::end_portion() {
  if (!grains_ || last_) return;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (has_place(p)) take_sum(p);
}

// Of the portions so far, with the gradient of this portion, if any; undefined before the last portion.
at::Tensor GradientBuckets::take_sum(std::size_t parameter) {
  at::Tensor grad = std::exchange(parameters_[parameter].parameter->tensor.mutable_grad(), at::Tensor());
  return grains_->add(parameter, portion_, std::move(grad), last_);
}

// No bucket waits for parameters that are not trained any more.
void GradientBuckets::begin_last_portion() {
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!states_[p].live || requires_grad(parameters_[p])) continue;
    if (!states_[p].filled) fill(p);
    finish(p);
  }
}

void GradientBuckets::on_gradient(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  states_[parameter].used = true;
  const bool fills = last_ || (!grains_ && !casts(parameter));
  if (!states_[parameter].filled && fills) fill(parameter);
  if (last_) finish(parameter);
}

void GradientBuckets::fill(std::size_t parameter) {
  at::Tensor& grad = parameters_[parameter].parameter->tensor.mutable_grad();
  if (grains_) grad = take_sum(parameter);
  if (grad.defined())
    views_[parameter].copy_(grad);
  else if (grains_)
    fill_with_nothing(views_[parameter]);
  else
    views_[parameter].zero_();
  if (grains_)
    grad = at::Tensor();
  else if (!casts(parameter) && grad.defined())
    grad = views_[parameter];
  states_[parameter].filled = true;
}

bool GradientBuckets::casts(std::size_t parameter) const {
  return has_place(parameter) && plan_.buckets[states_[parameter].bucket].dtype !=
                                     parameters_[parameter].parameter->tensor.scalar_type();
}

bool GradientBuckets::has_own_gradients() const {
  if (grains_) return true;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (casts(p)) return true;
  return false;
}

std::vector<at::Tensor> GradientBuckets::gradients() {
  std::vector<at::Tensor> gradients = views_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!casts(p) || !requires_grad(parameters_[p])) continue;
    const at::NoGradGuard no_grad;
    const at::Tensor& parameter = parameters_[p].parameter->tensor;
    at::Tensor& own = parameter.mutable_grad();
    if (!own.defined()) own = at::empty_like(parameter.detach());
    gradients[p] = own.copy_(views_[p]);
  }
  return gradients;
}

int64_t GradientBuckets::unused() const {
  int64_t count = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    count += has_place(p) && !states_[p].used && requires_grad(parameters_[p]) ? 1 : 0;
  return count;
}

at::Tensor GradientBuckets::used() const {
  at::Tensor used = at::empty({std::ssize(states_)}, at::kDouble);
  for (std::size_t p = 0; p < states_.size(); ++p) used.data_ptr<double>()[p] = states_[p].used ? 1 : 0;
  return used;
}

// A parameter that is used twice accumulates once: autograd sums before calling the hook.
void GradientBuckets::finish(std::size_t parameter) {
  ParameterState& state = states_[parameter];
  if (state.finished) return;
  state.finished = true;
  if (--missing_[state.bucket] == 0) full_(state.bucket);
}

void GradientBuckets::end_pass() {
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!states_[p].live) continue;
    if (!states_[p].filled) {
      TUTTI_PROBE("bucket: a parameter without a gradient is filled with zeros");
      fill(p);
    }
    finish(p);
  }
}

// Does not touch reported buckets, which Sync reduces.
void GradientBuckets::abandon_pass() {
  const at::NoGradGuard no_grad;
  if (grains_) grains_->clear();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!states_[p].live) continue;
    parameters_[p].parameter->tensor.mutable_grad() = at::Tensor();
    if (missing_[states_[p].bucket] > 0)
      views_[p].zero_();
    else
      TUTTI_PROBE("bucket: a pass is abandoned after the bucket was full");
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (states_[p].live) finish(p);
}

}  // namespace tutti
