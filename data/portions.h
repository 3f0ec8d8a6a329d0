#pragma once

#include <cstdint>
#include <vector>

#include "tensors/rank_topology.h"
#include "tensors/tree.h"

namespace tutti {

// Samples [first, first + samples) of the global batch, which go through the model together.
struct Portion {
  int64_t index = 0;    // among the portions of the same cut
  int64_t first = 0;    // place in the global batch
  int64_t samples = 0;  // 0: the batch has no more; the rank only takes part in collectives
  bool last = true;     // of the cut

  friend bool operator==(const Portion&, const Portion&) = default;
};

// How each rank cuts its batch for training. All ranks have the same plan, so as many portions.
struct PortionPlan {
  int64_t count = 1;  // portions of a batch, of which the last may be smaller or empty
  int64_t size = 0;   // the fewest samples of a portion that is not the last with samples

  // Samples of the first portion of a batch with so many samples, if there are as many.
  int64_t portion_size(int64_t batch) const;
  friend bool operator==(const PortionPlan&, const PortionPlan&) = default;
};

// The parts of a global batch that a rank has, of which the first is that of data_rank. Lower parts have one
// sample more where their number does not divide the batch.
std::vector<Portion> parts_of_rank(int64_t global_samples, const RankTopology& topology);
Portion part_of_rank(int64_t global_samples, const RankTopology& topology);  // the first
// The most samples of any of `parts` parts of a batch that differ by one sample at most: the quotient,
// rounded up.
int64_t largest_part(int64_t samples, int64_t parts);

// For training: plan.count portions of a rank's batch, cut as by torch.split.
std::vector<Portion> portions_of(const Portion& batch, const PortionPlan& plan);
// For evaluation: portions of `most` samples, each cut again into portions of `fits` samples, which fit into
// memory; the last of each cut may be smaller, none is empty.
std::vector<Portion> portions_of(const Portion& batch, int64_t most, int64_t fits);

// The samples of the portion. `first`: the place of the batch's first sample in the global batch.
Batch samples_of(const Batch& batch, int64_t first, const Portion& portion);

}  // namespace tutti
