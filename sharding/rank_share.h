#pragma once

#include "collectives/mesh.h"
#include "sharding/catalog.h"
#include "tensors/rank_topology.h"

namespace tutti {

// The place of a rank, with its share of the parameters under the strategy, and its parts of a batch.
//
// `grains`: 0, or the number of parts of a global batch on any number of ranks, a power of two. The gradients
// of all grains are summed as one balanced tree, whoever adds them, so their bits are the same on any number
// of ranks. The largest power of two of ranks, G at most, compute as many grains each; further ranks only
// take part in collectives. Under `none` and `optimizer` a rank's grains are neighbours, and the rank sums
// them before ranks do. Under the others each portion is summed over ranks first, so that a rank keeps sums
// of its rows alone: there rank r of n has grains r, r + n, ...
RankTopology topology_of(const ShardingSettings& sharding, int rank, int world, int grains = 0);

// All ranks, by their topologies: replicas of the model, and ranks that share a replica.
Mesh mesh_of(const ShardingSettings& sharding, int world);

}  // namespace tutti
