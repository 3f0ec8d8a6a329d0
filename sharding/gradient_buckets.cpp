#include "sharding/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tutti {
namespace {

// Runs right after a parameter's gradient was accumulated.
class ArrivalHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ArrivalHook(std::function<void()> arrived) : arrived_(std::move(arrived)) {}
  void operator()(const torch::autograd::Variable&) override { arrived_(); }

 private:
  std::function<void()> arrived_;
};

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& one : parameters) tensors.push_back(one.parameter->tensor);
  return tensors;
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<NamedParameter> parameters, int64_t bucket_bytes, Full full,
                                 std::optional<at::ScalarType> dtype)
    : parameters_(std::move(parameters)),
      plan_(plan_buckets(tensors_of(parameters_), bucket_bytes, dtype)),
      full_(std::move(full)),
      places_(parameters_.size()) {
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    for (const auto& slot : plan_.buckets[b].slots) places_[slot.parameter].bucket = static_cast<int>(b);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p].parameter->tensor,
                                                   std::make_unique<ArrivalHook>([this, p] { arrived(p); }));
  }
}

GradientBuckets::~GradientBuckets() {
  for (auto& one : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(one.parameter->tensor, nullptr);
}

void GradientBuckets::bind(const std::vector<at::Tensor>& memory) {
  views_.assign(parameters_.size(), {});
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
    for (const auto& slot : plan_.buckets[b].slots)
      views_[slot.parameter] =
          slot_view(memory[b], plan_.buckets[b], slot, parameters_[slot.parameter].parameter->tensor);
}

std::vector<std::vector<DigestPart>> GradientBuckets::parts() const {
  std::vector<std::vector<DigestPart>> parts;
  for (const auto& bucket : plan_.buckets) {
    auto& named = parts.emplace_back();
    for (const auto& slot : bucket.slots) {
      const NamedParameter& one = parameters_[slot.parameter];
      const auto item = static_cast<int64_t>(c10::elementSize(bucket.dtype));
      const int64_t begin = slot.offset * item;
      named.push_back({one.name, begin, begin + one.parameter->tensor.numel() * item});
    }
  }
  return parts;
}

void GradientBuckets::begin_step() {
  last_ = false;
  missing_.assign(plan_.buckets.size(), 0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    places_[p].used = places_[p].filled = places_[p].final = false;
    ++missing_[places_[p].bucket];
    parameters_[p].parameter->tensor.mutable_grad() = at::Tensor();
  }
}

void GradientBuckets::begin_last_microbatch() { last_ = true; }

void GradientBuckets::arrived(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  places_[parameter].used = true;
  if (!places_[parameter].filled && (last_ || !casts(parameter))) fill(parameter);
  if (last_) settle(parameter);
}

void GradientBuckets::fill(std::size_t parameter) {
  at::Tensor& grad = parameters_[parameter].parameter->tensor.mutable_grad();
  if (grad.defined())
    views_[parameter].copy_(grad);
  else
    views_[parameter].zero_();
  if (!casts(parameter) && grad.defined()) grad = views_[parameter];
  places_[parameter].filled = true;
}

bool GradientBuckets::casts(std::size_t parameter) const {
  return plan_.buckets[places_[parameter].bucket].dtype !=
         parameters_[parameter].parameter->tensor.scalar_type();
}

bool GradientBuckets::casts() const {
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (casts(p)) return true;
  return false;
}

std::vector<at::Tensor> GradientBuckets::gradients() {
  std::vector<at::Tensor> gradients = views_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!casts(p)) continue;
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
    count += !places_[p].used && parameters_[p].parameter->tensor.requires_grad() ? 1 : 0;
  return count;
}

at::Tensor GradientBuckets::used() const {
  at::Tensor used = at::empty({std::ssize(places_)}, at::kDouble);
  for (std::size_t p = 0; p < places_.size(); ++p) used.data_ptr<double>()[p] = places_[p].used ? 1 : 0;
  return used;
}

// A parameter that is used twice accumulates once: autograd sums before it calls the hook.
void GradientBuckets::settle(std::size_t parameter) {
  Place& place = places_[parameter];
  if (place.final) return;
  place.final = true;
  if (--missing_[place.bucket] == 0) full_(place.bucket);
}

void GradientBuckets::end_step() {
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!places_[p].filled) fill(p);
    settle(p);
  }
}

// Buckets that were reported are Sync's: they are not touched.
void GradientBuckets::abandon_step() {
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    parameters_[p].parameter->tensor.mutable_grad() = at::Tensor();
    if (missing_[places_[p].bucket] > 0) views_[p].zero_();
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p) settle(p);
}

}  // namespace tutti
