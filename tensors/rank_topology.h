#pragma once

namespace tutti {

// A rank's share of the parameters. Replicas have equal shares.
struct Share {
  int pieces = 1;  // that each parameter is cut into
  int index = 0;   // of this rank's piece: its shard
  int replicas = 1;
  int replica = 0;
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
