#pragma once

#include <vector>

#include "data/dataset.h"

namespace tutti {

// Tensors in memory, side by side: row i of each is sample i. torch.utils.data.TensorDataset.
class TensorDataset final : public Dataset {
 public:
  // Integer targets lie below `classes`; 0 = there are none. Throws UserError where a tensor has no rows, or
  // not as many as the others.
  explicit TensorDataset(TensorTree tensors, int64_t classes = 0);

  int64_t size() const override { return tensors_.samples(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices) const override;
  uint64_t digest() const override { return digest_; }  // of every value

 private:
  TensorTree tensors_;
  int64_t classes_;
  uint64_t digest_ = 0;
};

// Made-up samples for benchmarks, a function of the seed; they cost no more than copying them.
class SyntheticDataset final : public Dataset {
 public:
  enum class Targets { kClass, kSequence };

  struct Options {
    int64_t samples = 4096;
    Shape shape = {64};  // of one sample; of kSequence one dimension, the sequence's length
    Targets targets = Targets::kClass;
    int64_t classes = 10;  // labels, or tokens, lie below it
    uint64_t seed = 0;
  };

  explicit SyntheticDataset(const Options& options);

  int64_t size() const override { return options_.samples; }
  SampleSpec spec() const override;
  // kClass: "input" float32 [n, shape...], normal; "target" int64 [n].
  // kSequence: "input" and "target" int64 [n, L], the target one token ahead.
  Batch get(std::span<const int64_t> indices) const override;
  uint64_t digest() const override;

 private:
  Batch labelled(std::span<const int64_t> indices) const;
  Batch sequences(std::span<const int64_t> indices) const;

  Options options_;
  std::vector<float> normals_;  // every sample's input is a stretch of them
};

}  // namespace tutti
