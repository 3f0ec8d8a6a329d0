#include "sharding/unit_hooks.h"

#include <ATen/core/Tensor.h>

#include <utility>

namespace tutti {
namespace {

using Weak = std::weak_ptr<const UnitHooks::Events>;

// A hook on the tensor, unlike a function that passes it on, leaves operations in place possible. False if
// there is no backward.
bool hook_backward(const TensorTree& output, std::size_t unit, const Weak& events) {
  bool any = false;
  for (const auto& [name, tensor] : output.leaves()) {
    if (!tensor.requires_grad()) continue;
    any = true;
    tensor.register_hook([unit, events](const at::Tensor&) {
      if (const auto live = events.lock()) live->before_backward(unit);
    });
  }
  return any;
}

}  // namespace

UnitHooks::UnitHooks(const std::vector<Unit>& units, Events events)
    : events_(std::make_shared<const Events>(std::move(events))) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (!units[u].slot) continue;
    hooks_.push_back(units[u].slot->around([this, u](const TensorTree& input, const Slot::Next& next) {
      events_->before_forward(u);
      TensorTree output = next(input);
      events_->after_forward(u, hook_backward(output, u, events_));
      return output;
    }));
  }
}

}  // namespace tutti
