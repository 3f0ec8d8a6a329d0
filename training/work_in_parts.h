#pragma once

#include <cstdint>
#include <functional>

#include "training/state.h"

namespace tutti {

// State::with_model for a number of items, which `work` takes in order.
struct PartedWork {
  int64_t items = 0;
  int64_t part = 1;      // items at a time, at most
  int64_t forwards = 1;  // of the model for a part, at most
  std::function<void(int64_t first, int64_t count)> work;
};

// Called by all ranks alike; those for which `works` do the work. If memory runs out, all ranks do the rest
// in parts half as large, from the part on that failed. Throws c10::OutOfMemoryError if one item is too
// large.
void work_in_parts(const State& state, bool works, const PartedWork& job);

}  // namespace tutti
