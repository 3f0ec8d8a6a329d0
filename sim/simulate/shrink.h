#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// A recipe and a fault plan, as written, with which a seed violates an invariant.
struct FailingCase {
  Setting recipe;
  int ranks = 1;
  Setting plan;  // none: no faults
  uint64_t seed = 1;
  std::string finding = {};
};

// Simulates a case with its seed, and perhaps others; the first violation, if any. A case that is refused
// violates nothing.
struct SeedFinding {
  uint64_t seed = 1;
  std::string finding;
};
using FindViolation = std::function<std::optional<SeedFinding>(const FailingCase&)>;

// Makes a case smaller as long as it violates the same invariant: fewer ranks, faults, steps, algorithms and
// keys, and the smallest model. Tries at most `most_tries` cases. `on_smaller` gets each smaller one.
FailingCase shrink(FailingCase failing, const FindViolation& find, int most_tries,
                   const std::function<void(const FailingCase&, int tries)>& on_smaller = {});

// The written recipe with paths that hold in any folder. `resolved`: the same recipe, resolved.
Setting with_absolute_paths(Setting written, const Setting& resolved);

}  // namespace tutti
