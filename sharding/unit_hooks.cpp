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
    const Weak weak = events_;
    units[u].slot->add_before([u, weak](const TensorTree&) {
      if (const auto live = weak.lock()) live->before_forward(u);
    });
    units[u].slot->add_after([u, weak](const TensorTree&, TensorTree output) {
      if (const auto live = weak.lock()) {
        const bool has_backward = hook_backward(output, u, weak);
        live->after_forward(u, has_backward);
      }
      return output;
    });
  }
}

}  // namespace tutti
