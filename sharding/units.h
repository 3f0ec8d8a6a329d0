#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "models/layers/layer.h"
#include "sharding/catalog.h"

namespace tutti {

// Parameters that are gathered together: of the layers at and below a slot. The root unit has all other
// parameters.
struct Unit {
  std::string name;                     // of the slot: "transformer.h.3"; "model": the root unit
  Slot* slot = nullptr;                 // null: the root unit
  std::vector<std::size_t> parameters;  // indices in parameters(root), ascending
};

// The units of a model: the root unit, then the other units in the order of their slots. By default each of
// several neighbouring layers of one kind ("blocks that repeat") is a unit, outermost first, also inside
// containers (Sequential). Else units follow the settings' `units`, or are the smallest layers of at least
// `unit_mb`. Units are not nested. Shared parameters stay in the root unit: of a layer in several slots, of
// several layers, or of a layer that another layer reads (Layer::reads), unless both layers are in one unit.
//
// `run`: runs the model once. The units are then in the order of the model's calls, and a unit that is not
// called exactly once joins the root unit. Without `run`, or if `run` throws: the order of the slots.
std::vector<Unit> find_units(Layer& root, const ShardingSettings& settings = {},
                             const std::function<void()>& run = {});

// The layers whose activations are checkpointed: of the slots of units every n-th, in the order of slots, or
// the outermost layers of the wanted kinds and names.
std::vector<NamedSlot> find_checkpointed(Layer& root, const ShardingSettings& settings);

// The entries of `wanted` (ShardingSettings::units, checkpoint_layers) that match no kind or name of a layer
// below the root.
std::vector<std::string> unmatched_units(Layer& root, const std::vector<std::string>& patterns);

}  // namespace tutti
