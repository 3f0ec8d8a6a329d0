#pragma once

#include <cstdint>

namespace tutti {

// The axes on which ranks are arranged (collectives/mesh.h), outermost first.
enum class Axis : uint8_t { kReplicate, kShard };
inline constexpr int kAxes = 2;

// One of several ranks: of an axis, or of ranks that share a piece of work.
struct AxisRank {
  int size = 1;  // number of ranks
  int index = 0;
};

// The coordinates of a rank on the axes. Ranks of the axis kShard share the parameters; `Placement` says how.
// Replicas have equal shares.
struct Share {
  int pieces = 1;  // the size of kShard
  int index = 0;   // of this rank's piece: its shard
  int replicas = 1;
  int replica = 0;

  AxisRank on(Axis axis) const {
    return axis == Axis::kShard ? AxisRank{pieces, index} : AxisRank{replicas, replica};
  }
};

// The place of a rank among the ranks of a run, and its parts of a global batch, which is cut into
// `data_world` parts. Samplers, loss weights and draws ask for parts. Mostly each rank has one part. Where
// parts are grains (sharding/rank_share.h), a rank has `data_parts` of them, one after the other: data_rank,
// data_rank + data_stride, ...; parts from data_world on are empty. In a pass `data_rank` is the current
// part.
struct RankTopology {
  int rank = 0;  // of all ranks
  int world = 1;
  int data_rank = 0;
  int data_world = 1;
  int data_parts = 1;  // the same number on all ranks
  int data_stride = 1;
  bool has_grains = false;  // data_world does not depend on the number of ranks
  Share share = {};
};

}  // namespace tutti
