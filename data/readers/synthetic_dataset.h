#pragma once

#include <vector>

#include "data/dataset.h"
#include "data/readers/options.h"

namespace tutti {

// Tensors in memory; row i of each is sample i. torch.utils.data.TensorDataset.
class TensorDataset final : public Dataset {
 public:
  // Integer targets are below `classes`; 0 = no classes. Throws UserError if the numbers of rows differ or
  // are 0.
  explicit TensorDataset(TensorTree tensors, int64_t classes = 0);

  int64_t size() const override { return tensors_.samples(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override { return digest_; }  // of all values

 private:
  TensorTree tensors_;
  int64_t classes_;
  uint64_t digest_ = 0;
};

// Synthetic samples for benchmarks: a function of the seed, as cheap as a copy.
class SyntheticDataset final : public Dataset {
 public:
  using Targets = SyntheticTargets;

  struct Options {
    int64_t samples = 4096;
    Shape shape = {64};  // of a sample; for kSequence the length
    Targets targets = Targets::kClass;
    int64_t classes = 10;  // labels or tokens are below
    uint64_t seed = 0;
  };

  explicit SyntheticDataset(const Options& options);

  int64_t size() const override { return options_.samples; }
  SampleSpec spec() const override;
  // kClass: "input" float32 [n, shape...], normal distribution; "target" int64 [n].
  // kSequence: "input" and "target" int64 [n, L]; the target is one token ahead.
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;

 private:
  Batch labelled(std::span<const int64_t> indices) const;
  Batch sequences(std::span<const int64_t> indices) const;

  Options options_;
  std::vector<float> normals_;  // every sample's input is a slice
};

}  // namespace tutti
