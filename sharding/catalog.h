#pragma once

#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// [sharding]
Catalog sharding_catalog();

// What a rank has beside its share: its rows of every parameter.
enum class ShardingStrategy {
  kNone,       // everything
  kOptimizer,  // parameters and gradients; ZeRO-1
  kGradients,  // parameters; ZeRO-2
  kFull,       // parameters of the units that compute; ZeRO-3, FSDP
  kHybrid,     // as kFull; shares are those of groups of ranks, and each group has a copy
};

struct ShardingSettings {
  ShardingStrategy strategy = ShardingStrategy::kNone;
  int shard_size = 0;              // ranks that share a copy, with kHybrid only; 0 = not given
  std::vector<std::string> units;  // kinds of layers, or patterns of names with *; empty: blocks that repeat
  double unit_mb = 0;              // MiB of a layer with all below it, at least; 0 = by `units`
  bool prefetch = true;
  bool reshard_after_forward = true;

  // Throws UserError if two keys contradict each other.
  static ShardingSettings read(const Setting& section);
};

}  // namespace tutti
