#include "sharding/rank_share.h"

#include <string>

#include "runtime/error.h"

namespace tutti {

RankTopology topology_of(const ShardingSettings& sharding, int rank, int world) {
  using enum ShardingStrategy;
  RankTopology place{.rank = rank, .world = world, .data_rank = rank, .data_world = world};
  if (world == 1) return place;
  const int pieces = sharding.strategy == kNone     ? 1
                     : sharding.strategy == kHybrid ? sharding.shard_size.value
                                                    : world;
  if (pieces < 1 || world % pieces != 0)
    throw UserError("shard_size = " + std::to_string(pieces) +
                    ": expected a divisor of the number of ranks, " + std::to_string(world));
  place.share = {pieces, rank % pieces, world / pieces, rank / pieces};
  return place;
}

Mesh mesh_of(const ShardingSettings& sharding, int world) {
  const int pieces = topology_of(sharding, 0, world).share.pieces;
  return Mesh({{kReplicateAxis, world / pieces}, {kShardAxis, pieces}});
}

}  // namespace tutti
