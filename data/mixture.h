#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// Samples of several datasets, a fixed number of each in an epoch. A dataset that gives more than its size is
// gone through again, in another order; in a dataset that gives fewer samples, an epoch continues where the
// epoch before ended. So an epoch's order is a function of seed and epoch, as of any dataset.
class Mixture final : public Dataset {
 public:
  struct Source {
    std::string name;  // for errors
    DatasetPtr data;
    int64_t samples = 0;  // in an epoch
  };

  // Throws UserError if a source's samples differ from the first source's in arrays, shapes, dtypes or
  // tokenizer.
  explicit Mixture(std::vector<Source> sources);

  int64_t size() const override { return first_.back(); }  // samples of an epoch
  SampleSpec spec() const override;
  // Sample i of source s is first_index(s) + i.
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override;
  void scan() const override;
  uint64_t digest() const override;
  std::string advice() const override;
  std::string replaced() const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override { return sources_.front().data->tokenizer(); }

  int64_t first_index(std::size_t source) const { return begin_[source]; }

 private:
  std::size_t source_of(int64_t index) const;
  std::string first_text(std::string (*text_of)(const Dataset&)) const;

  std::vector<Source> sources_;
  std::vector<int64_t>
      first_;  // in an epoch, before shuffling: where a source's samples begin; and the number
  std::vector<int64_t> begin_;  // of indices: where a source's begin; and the number
};

}  // namespace tutti
