#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/catalog.h"
#include "tensors/tree.h"

namespace tutti {

// Samples by index. Reading is thread-safe and has no state, so that any rank can take any sample at any
// time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;

  // The samples at `indices`, stacked: every leaf [indices.size(), ...]. Duplicates are allowed.
  virtual Batch get(std::span<const int64_t> indices) const = 0;

  // The epoch's order: the sample at `position` of epoch `epoch`. Default: a counter-based permutation of all
  // samples keyed by (seed, epoch) when `shuffle`, else the identity.
  virtual int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const;

  // Reads everything and throws UserError (file, array, row, value) on the first bad sample.
  virtual void scan() const {}

  // A hash of what it would yield, cheap (sizes, names, a few samples), to tell datasets apart in a
  // checkpoint.
  virtual uint64_t digest() const = 0;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

// Which samples a rank sees in a step: a pure function of (seed, epoch, batch, rank, world). The epoch's
// order is cut by global batch, then each global batch into `world` contiguous parts, so any number of ranks
// sees the same global batches and a run can go on anywhere at no cost. A batch that `world` does not divide
// is spread as evenly as it goes (lower ranks get one sample more). The last batch of an epoch may be short,
// so that a rank gets none; every sample is seen once.
//
// Where each rank has data of its own, it goes through all of it by itself: its part of each global batch is
// the next of its own order.
class Sampler {
 public:
  struct Plan {
    int64_t samples = 0;       // of the epoch; where each rank has its own, of each
    int64_t global_batch = 0;  // samples of all ranks together; divisible by `world` where each has its own
    int rank = 0;
    int world = 1;
    uint64_t seed = 0;
    bool own = false;  // each rank has data of its own
    DataSettings loading = {};
  };

  explicit Sampler(const Plan& plan);

  int64_t batches() const;                      // of an epoch
  int64_t global_samples(int64_t batch) const;  // of batch `batch`, all ranks
  // The dataset indices of this rank's part of batch `batch` of epoch `epoch`.
  std::vector<int64_t> indices(const Dataset& dataset, int64_t epoch, int64_t batch) const;

 private:
  int64_t batch_samples(int64_t batch) const;

  Plan plan_;
  int64_t stride_;  // samples of a whole batch, in the order that this rank goes through
};

// Samples of a batch on the rank that has the most.
inline int64_t largest_part(int64_t global_samples, int world) {
  return (global_samples + world - 1) / world;
}
// A rank's samples of a batch over those of an even part: 1 where `world` divides the batch.
inline double share_of_even_part(int64_t samples, int64_t global_samples, int world) {
  return static_cast<double>(samples * world) / static_cast<double>(global_samples);
}

}  // namespace tutti
