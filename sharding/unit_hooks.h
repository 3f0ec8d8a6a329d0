#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sharding/units.h"

namespace tutti {

// Reports when the model computes with a unit. Backward runs in the reverse order of forward: when the
// backward of a unit begins, the backward of all units called after it is over.
class UnitHooks {
 public:
  struct Events {
    std::function<void(std::size_t unit)> before_forward;
    std::function<void(std::size_t unit, bool has_backward)> after_forward;
    std::function<void(std::size_t unit)> before_backward;  // once for each output with a gradient
  };

  // Sets hooks on the slots of all units but the root unit. They act while this object lives, on the thread
  // that runs the model.
  UnitHooks(const std::vector<Unit>& units, Events events);

 private:
  std::shared_ptr<const Events> events_;  // hooks on tensors may outlive this
  std::vector<Slot::Hook> hooks_;
};

}  // namespace tutti
