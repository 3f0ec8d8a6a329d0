#pragma once

#include <vector>

#include "models/layers/layer.h"
#include "recipe/setting.h"
#include "sharding/catalog.h"

namespace tutti {

// Throws UserError at [sharding] activation_checkpointing: the model has no such layer, or the strategy
// gathers a part of the layer alone, so that the part is not there when backward calls the layer again.
void require_checkpointed(Layer& root, const ShardingSettings& settings);

// Checkpoints the activations of a model's layers (models/layers/checkpointed_slot.h), as long as the result
// lives. Call after Unsharding is made, whose hooks are then outside of both calls of a layer.
[[nodiscard]] std::vector<Slot::Hook> checkpoint_activations(Layer& root, const ShardingSettings& settings);

}  // namespace tutti
