#pragma once

#include <cstdint>
#include <functional>

#include "training/state.h"

namespace tutti {

// State::with_model for a number of items, which `work` takes in order.
struct PartedWork {
  int64_t items = 0;
  int64_t part = 1;      // most items at a time
  int64_t forwards = 1;  // most forward passes of the model for a part
  std::function<void(int64_t first, int64_t count)> work;
};

// All ranks must call run; ranks with `works` do the work. If memory runs out, all ranks continue from the
// failed part with parts half as large. Throws c10::OutOfMemoryError if one item is too large.
void work_in_parts(const State& state, bool works, const PartedWork& job);

}  // namespace tutti
