#pragma once

#include "collectives/mesh.h"
#include "sharding/catalog.h"
#include "tensors/rank_topology.h"

namespace tutti {

// The place of a rank, with its share of the parameters under the strategy.
RankTopology topology_of(const ShardingSettings& sharding, int rank, int world);

// All ranks, by their topologies: replicas of the model, and ranks that share a replica.
Mesh mesh_of(const ShardingSettings& sharding, int world);

}  // namespace tutti
