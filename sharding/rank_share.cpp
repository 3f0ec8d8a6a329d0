#include "sharding/rank_share.h"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/error.h"

namespace tutti {

namespace {

RankTopology with_grains(RankTopology place, ShardingStrategy strategy, int grains) {
  const int computing =
      std::min(static_cast<int>(std::bit_floor(static_cast<unsigned>(place.world))), grains);
  const bool sums_before_ranks =
      strategy == ShardingStrategy::kNone || strategy == ShardingStrategy::kOptimizer;
  place.has_grains = true;
  place.data_world = grains;
  place.data_parts = grains / computing;
  place.data_stride = sums_before_ranks ? 1 : computing;
  place.data_rank = place.rank >= computing ? grains
                    : sums_before_ranks     ? place.rank * place.data_parts
                                            : place.rank;
  return place;
}

}  // namespace

RankTopology topology_of(const ShardingSettings& sharding, int rank, int world, int grains) {
  using enum ShardingStrategy;
  RankTopology place{.rank = rank, .world = world, .data_rank = rank, .data_world = world};
  if (grains > 0) place = with_grains(place, sharding.strategy, grains);
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
