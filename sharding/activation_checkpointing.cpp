#include "sharding/activation_checkpointing.h"

#include <algorithm>
#include <string>

#include "models/layers/checkpointed_slot.h"
#include "sharding/units.h"

namespace tutti {
namespace {

bool is_below(const std::string& name, const std::string& above) { return name.starts_with(above + "."); }

void require_whole_units(Layer& root, const ShardingSettings& settings) {
  if (settings.strategy < ShardingStrategy::kFull) return;
  const auto units = find_units(root, settings);
  for (const NamedSlot& named : find_checkpointed(root, settings)) {
    const auto within =
        std::ranges::find_if(units, [&](const Unit& unit) { return is_below(unit.name, named.name); });
    if (within != units.end())
      settings.activation_checkpointing.fail(
          "'" + named.name + "' contains '" + within->name +
          "', which is gathered alone; expected layers at or below one of sharding.units");
  }
}

}  // namespace

void require_checkpointed(Layer& root, const ShardingSettings& settings) {
  if (!settings.checkpoints_activations()) return;
  const Setting& key = settings.activation_checkpointing;
  for (const std::string& layer : unmatched_units(root, settings.checkpoint_layers))
    key.fail("the model has no layer of the kind or name '" + layer + "'");
  if (find_checkpointed(root, settings).empty())
    key.fail("the model has fewer units than that; a list of layers' kinds or names says which layers");
  require_whole_units(root, settings);
}

std::vector<Slot::Hook> checkpoint_activations(Layer& root, const ShardingSettings& settings) {
  std::vector<Slot::Hook> hooks;
  for (const NamedSlot& named : find_checkpointed(root, settings))
    hooks.push_back(checkpoint_activations(*named.slot, named.name, settings.offloads_activations));
  return hooks;
}

}  // namespace tutti
