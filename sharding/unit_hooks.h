#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sharding/units.h"

namespace tutti {

// Says when the model computes with a unit. In backward, autograd runs what came later in forward first; so
// when the backward of a unit begins, that of all units which were called after it is over.
class UnitHooks {
 public:
  struct Events {
    std::function<void(std::size_t unit)> before_forward;
    std::function<void(std::size_t unit, bool has_backward)> after_forward;
    std::function<void(std::size_t unit)> before_backward;  // once for each output that has a gradient
  };

  // Sets hooks on the slots of all units but the root unit. They act while this lives, on the thread that
  // runs the model.
  UnitHooks(const std::vector<Unit>& units, Events events);

 private:
  std::shared_ptr<const Events> events_;  // hooks on tensors may outlive this
  std::vector<Slot::Hook> hooks_;
};

}  // namespace tutti
