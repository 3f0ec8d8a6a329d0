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

// The place of a rank among the ranks of a run. `data_rank` counts ranks whose batches differ; samplers,
// accumulation, loss weights and draws ask for it. Today all ranks differ; ranks that share a batch (tensor
// and pipeline parallelism) would have one data_rank.
struct RankTopology {
  int rank = 0;  // of all ranks
  int world = 1;
  int data_rank = 0;
  int data_world = 1;
  Share share = {};
};

}  // namespace tutti
