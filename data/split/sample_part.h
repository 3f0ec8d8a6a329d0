#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// Some samples of another dataset: sample i is `samples`[i] there, and draws the same numbers.
class SamplePart final : public Dataset {
 public:
  struct Options {
    std::vector<int64_t> samples;   // ascending
    bool follows_order = false;     // shuffled in the other's own order, as shards need it
    bool speaks_for_whole = false;  // of parts of a dataset, the part that scans the whole, and has advice
    std::string note = "";          // advice on the division; "" = none
  };

  SamplePart(DatasetPtr whole, Options options);

  int64_t size() const override { return std::ssize(options_.samples); }
  SampleSpec spec() const override { return whole_->spec(); }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override;
  void scan() const override;
  uint64_t digest() const override;
  std::string advice() const override;
  std::string replaced() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return whole_->tokenizer(); }
  LabelRange labels() const override { return whole_->labels(); }
  std::string fitted() const override { return whole_->fitted(); }
  int64_t memory_bytes() const override { return options_.speaks_for_whole ? whole_->memory_bytes() : 0; }
  DatasetPtr with(const Transforms& added) const override;

  const DatasetPtr& whole() const { return whole_; }
  const std::vector<int64_t>& samples() const { return options_.samples; }

 private:
  struct EpochOrder {
    uint64_t seed = 0;
    int64_t epoch = 0;
    std::vector<int64_t> samples;
  };
  std::shared_ptr<const EpochOrder> order_of(uint64_t seed, int64_t epoch) const;

  DatasetPtr whole_;
  Options options_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const EpochOrder>> orders_;  // those used last
};

}  // namespace tutti
