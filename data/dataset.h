#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/data_settings.h"
#include "data/label_range.h"
#include "data/portions.h"
#include "data/transforms/transform.h"
#include "tensors/tree.h"

namespace tutti {

class Tokenizer;  // data/tokenizers/tokenizer.h

// When a sample is read. Random transforms draw by (seed, epoch, sample): any number of ranks sees the same.
struct Epoch {
  uint64_t seed = 0;   // of the run
  int64_t number = 0;  // from 0; 0 in evaluations and predictions
};

// Random access to samples. Thread-safe and stateless: any thread of any rank may read any sample at any
// time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;

  // Stacks the samples at `indices`: every leaf is [indices.size(), ...]. Duplicates are allowed. A sample
  // depends on its index and the epoch alone, not on neighbouring samples: threads share a batch.
  virtual Batch get(std::span<const int64_t> indices, const Epoch& epoch) const = 0;

  // The index of the sample at `position` of epoch `epoch`. Default: a counter-based permutation of all
  // samples keyed by (seed, epoch) if `shuffle`, else `position`.
  virtual int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const;

  // Reads all samples and throws UserError (file, array, row, value) on the first bad sample.
  virtual void scan() const {}

  // A cheap hash of the content (sizes, names, a few samples), which identifies the dataset in a checkpoint.
  virtual uint64_t digest() const = 0;

  // Advice to the user, if storage costs time, or data may be meant otherwise: lines. "" = none.
  virtual std::string advice() const { return {}; }

  // The number of unreadable samples that have been replaced or left out so far, and the first reason: a
  // line. "" = none.
  virtual std::string replaced() const { return {}; }
  // The tokenizer of the texts; null: the data is no text, or each byte is a token.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const { return nullptr; }

  // The labels, where integers that are no tokens are classes.
  virtual LabelRange labels() const { return {}; }

  // The facts of training data that evaluations and predictions use, and a checkpoint keeps: means,
  // categories and classes of tables (data/tables/fitted_table.h), as JSON. "" = none.
  virtual std::string fitted() const { return {}; }

  // Of samples that each process holds, beside files that are mapped; 0 = few, or unknown.
  virtual int64_t memory_bytes() const { return 0; }

  // This dataset with the transforms that algorithms add, at their place among its own. Null for a dataset
  // without transforms: see with_transforms (data/readers/transformed_dataset.h).
  virtual std::shared_ptr<const Dataset> with(const Transforms&) const { return nullptr; }
};
using DatasetPtr = std::shared_ptr<const Dataset>;

// A digest of the dataset's size and of 16 samples.
uint64_t digest_of_samples(const Dataset& data);

// Chooses a rank's samples in a step: a pure function of (seed, epoch, batch, and the rank's parts: see
// tensors/rank_topology.h). The epoch's order is cut into global batches, and each global batch into
// `data_world` contiguous parts. So any number of ranks sees the same global batches, and a run can resume at
// any batch. The last batch of an epoch may be short, so that some ranks get no sample; every sample is seen
// once.
//
// With per-rank datasets, a rank's part of a global batch is the next part of its own dataset's order.
class Sampler {
 public:
  struct Plan {
    int64_t samples = 0;       // of an epoch; with per-rank data, of each rank
    int64_t global_batch = 0;  // samples of all ranks; with per-rank data divisible by data_world
    RankTopology place = {};
    uint64_t seed = 0;
    bool per_rank_data = false;
    DataSettings loading = {};
  };

  explicit Sampler(const Plan& plan);

  int64_t batches() const;                      // in an epoch
  int64_t global_samples(int64_t batch) const;  // of all ranks in batch `batch`
  // Place of this rank's first sample of batch `batch` in the global batch.
  int64_t first_sample(int64_t batch) const;
  // Dataset indices of this rank's parts of batch `batch` in epoch `epoch`, one part behind the other.
  std::vector<int64_t> indices(const Dataset& dataset, int64_t epoch, int64_t batch) const;
  Epoch epoch(int64_t number) const { return {plan_.seed, number}; }

 private:
  int64_t batch_samples(int64_t batch) const;

  Plan plan_;
  int64_t stride_;  // samples of a full batch, in this rank's order
};

}  // namespace tutti
