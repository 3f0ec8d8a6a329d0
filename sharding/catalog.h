#pragma once

#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/section.h"

namespace tutti {

// [sharding]
Catalog sharding_catalog();

// The data of a rank besides its share, its rows of every parameter.
enum class ShardingStrategy {
  kNone,       // everything
  kOptimizer,  // parameters and gradients; ZeRO-1
  kGradients,  // parameters; ZeRO-2
  kFull,       // parameters of the units that compute; ZeRO-3, FSDP
  kHybrid,     // as kFull within groups of ranks; each group has a copy of the model
};

struct ShardingSettings {
  Given<ShardingStrategy> strategy = ShardingStrategy::kNone;
  Given<int> shard_size = 0;              // ranks that share a copy, with kHybrid only; 0 = not given
  Given<std::vector<std::string>> units;  // kinds of layers, or name patterns with *; empty: repeated blocks
  double unit_mb = 0;                     // least MiB of a layer with all layers below it; 0 = by `units`
  bool prefetch = true;
  Given<bool> reshard_after_forward = true;

  // Layers whose activations are computed again in backward: every so many units (0: none), or kinds and name
  // patterns.
  int64_t checkpoint_every = 0;
  std::vector<std::string> checkpoint_layers;
  Setting activation_checkpointing;   // the key that says so
  Setting offload;                    // the key of the next three
  bool offloads_activations = false;  // of those layers, to memory of the host
  bool offloads_optimizer = false;    // its state
  bool offloads_parameters = false;   // this rank's rows; then the optimizer's state too
  bool checkpoints_activations() const { return checkpoint_every > 0 || !checkpoint_layers.empty(); }

  static Kind<ShardingSettings> kind();
  // Throws UserError if two keys contradict each other.
  static ShardingSettings read(const Setting& section);
};

}  // namespace tutti
