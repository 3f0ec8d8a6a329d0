#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// Samples drawn with replacement, each by its weight: as many in an epoch as there are samples. A draw is a
// function of seed, epoch and position, whatever `shuffle` says. torch's WeightedRandomSampler in meaning.
class DrawnSamples final : public Dataset {
 public:
  // `weights`: of each sample, at least 0, and one above. `varies`: transforms draw other numbers each time
  // that a sample comes in an epoch.
  DrawnSamples(DatasetPtr data, std::vector<double> weights, bool varies);

  int64_t size() const override { return data_->size(); }
  SampleSpec spec() const override { return data_->spec(); }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  // With `varies`, position * size() + the sample.
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override;
  void scan() const override { data_->scan(); }
  uint64_t digest() const override;
  std::string advice() const override { return data_->advice(); }
  std::string replaced() const override { return data_->replaced(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return data_->tokenizer(); }
  LabelRange labels() const override { return data_->labels(); }
  std::string fitted() const override { return data_->fitted(); }
  int64_t memory_bytes() const override { return data_->memory_bytes(); }
  DatasetPtr with(const Transforms& added) const override;

  const DatasetPtr& data() const { return data_; }

 private:
  DatasetPtr data_;
  std::vector<double> weights_;
  std::vector<double> sums_;  // of the weights up to each sample
  bool varies_;
};

}  // namespace tutti
