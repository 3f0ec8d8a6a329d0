#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "models/layers/layer.h"
#include "sharding/catalog.h"

namespace tutti {

// Parameters that are gathered together: those of the layers at and below a slot, or, in the root unit, those
// that are in no other unit.
struct Unit {
  std::string name;                     // of the slot: "transformer.h.3"; "model": the root unit
  Slot* slot = nullptr;                 // null: the root unit
  std::vector<std::size_t> parameters;  // indices in parameters(root), ascending
};

// The units of a model: the root unit, then the others in the order of their slots. By default layers of one
// kind that stand beside each other ("blocks that repeat"), outermost first; containers (Sequential) are
// looked into. Else by the settings' `units`, or the smallest layers of `unit_mb` at least. Below a unit
// there is none. What is shared stays in the root unit: a layer in several slots, a parameter of several
// layers, and a layer whose parameters another one reads (Layer::reads), unless both are in the unit.
//
// `run`: runs the model once. The units are then in the order in which the model calls them, and one that it
// does not call exactly once is left to the root unit. Empty, or if it throws: the order of the slots.
std::vector<Unit> find_units(Layer& root, const ShardingSettings& settings = {},
                             const std::function<void()>& run = {});

// Those of `wanted` (ShardingSettings::units) that no layer below the root has as kind or name.
std::vector<std::string> unmatched_units(Layer& root, const std::vector<std::string>& wanted);

}  // namespace tutti
