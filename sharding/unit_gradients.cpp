#include "sharding/unit_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "sharding/tree_sum.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

bool wants_gradient(const NamedParameter& named) { return named.parameter->tensor.requires_grad(); }

}  // namespace

UnitGradients::UnitGradients(std::vector<NamedParameter> parameters, const std::vector<at::Tensor>& like,
                             const std::vector<Unit>& units, std::optional<at::ScalarType> dtype, bool grains,
                             Owner& owner)
    : parameters_(std::move(parameters)),
      bucket_of_(parameters_.size(), kNone),
      used_(parameters_.size(), false),
      grains_(grains),
      owner_(owner) {
  for (std::size_t u = units.size(); u-- > 0;) {
    std::vector<std::size_t> trained;
    for (const std::size_t p : units[u].parameters)
      if (wants_gradient(parameters_[p])) trained.push_back(p);
    for (Bucket& bucket : plan_buckets(like, trained, kAnyBytes, dtype).buckets) {
      for (const BucketSlot& slot : bucket.slots)
        bucket_of_[slot.parameter] = static_cast<int>(buckets_.size());
      buckets_.push_back(std::move(bucket));
      units_.push_back(u);
    }
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (has_place(p)) set_gradient_hook(parameters_[p].parameter->tensor, [this, p] { on_gradient(p); });
}

UnitGradients::~UnitGradients() {
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (has_place(p)) set_gradient_hook(parameters_[p].parameter->tensor, nullptr);
}

void UnitGradients::begin_pass() { used_.assign(parameters_.size(), false); }

void UnitGradients::begin_portion() {
  next_ = 0;
  missing_.assign(buckets_.size(), 0);
  found_.assign(buckets_.size(), 0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!has_place(p)) continue;
    parameters_[p].parameter->tensor.mutable_grad() = at::Tensor();
    if (wants_gradient(parameters_[p])) ++missing_[static_cast<std::size_t>(bucket_of_[p])];
  }
}

// A parameter that is used twice accumulates once: autograd sums before calling the hook.
void UnitGradients::on_gradient(std::size_t parameter) {
  if (static_cast<std::size_t>(bucket_of_[parameter]) < next_)
    throw UserError("sharding: the gradient of '" + parameters_[parameter].name +
                    "' comes after backward has left its unit; [sharding] units can leave it to the "
                    "parameters that are gathered for the whole pass");
  used_[parameter] = true;
  const auto bucket = static_cast<std::size_t>(bucket_of_[parameter]);
  ++found_[bucket];
  if (--missing_[bucket] == 0) fill_complete();
}

bool UnitGradients::is_live(const Bucket& bucket) const {
  return std::ranges::any_of(
      bucket.slots, [this](const BucketSlot& slot) { return wants_gradient(parameters_[slot.parameter]); });
}

// The root unit's parameters may be used again until backward ends, so it is filled then. A unit that waits
// for no gradient is filled when backward has left it, as on a rank that does not call it.
void UnitGradients::fill_complete() {
  const auto is_complete = [this](std::size_t bucket) {
    return units_[bucket] != 0 && missing_[bucket] == 0 && found_[bucket] > 0;
  };
  while (next_ < buckets_.size() && (!is_live(buckets_[next_]) || is_complete(next_))) fill(next_++);
}

void UnitGradients::leave_after(std::size_t unit) {
  for (; next_ < buckets_.size() && units_[next_] > unit; fill(next_++))
    if (missing_[next_] > 0) TUTTI_PROBE("sharding: backward leaves a unit that lacks gradients");
  fill_complete();
}

void UnitGradients::end_portion() {
  for (; next_ < buckets_.size(); fill(next_++))
    if (units_[next_] > 0 && found_[next_] == 0) TUTTI_PROBE("sharding: a rank sends zeros for a whole unit");
}

void UnitGradients::fill(std::size_t bucket) {
  if (!is_live(buckets_[bucket])) {
    TUTTI_PROBE("sharding: a unit has no trained parameter any more");
    return;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor memory = owner_.memory_of(bucket);
  for (const BucketSlot& slot : buckets_[bucket].slots) {
    if (!wants_gradient(parameters_[slot.parameter])) {
      TUTTI_PROBE("sharding: a frozen parameter in a trained unit");
      continue;
    }
    const at::Tensor& parameter = parameters_[slot.parameter].parameter->tensor;
    const at::Tensor view = slot_view(memory, buckets_[bucket], slot, parameter);
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined())
      view.copy_(grad);
    else if (grains_)
      fill_with_nothing(view);
    else
      view.zero_();
    grad = at::Tensor();
  }
  owner_.full(bucket);
}

void UnitGradients::abandon_pass() {
  for (const NamedParameter& named : parameters_) named.parameter->tensor.mutable_grad() = at::Tensor();
}

int64_t UnitGradients::unused() const {
  int64_t count = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    count += has_place(p) && !used_[p] && wants_gradient(parameters_[p]) ? 1 : 0;
  return count;
}

at::Tensor UnitGradients::used() const {
  at::Tensor used = at::empty({std::ssize(used_)}, at::kDouble);
  for (std::size_t p = 0; p < used_.size(); ++p) used.data_ptr<double>()[p] = used_[p] ? 1 : 0;
  return used;
}

}  // namespace tutti
