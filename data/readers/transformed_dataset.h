#pragma once

#include <map>
#include <string>

#include "data/dataset.h"
#include "data/readers/image_files.h"

namespace tutti {

// True if each array has the same size in all samples.
bool has_one_size(const SampleSpec& samples);

// The samples of another dataset, transformed. Samples of differing sizes go singly through the transforms
// that lead to one size, and form a batch only then. If the first transform of the images takes a part of
// each, ImageFiles decode that part alone.
class TransformedDataset final : public Dataset {
 public:
  // `text`: describes the transforms, for the digest. Throws UserError if the samples do not suit a
  // transform.
  TransformedDataset(DatasetPtr below, Transforms transforms, std::string text);

  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override { return spec_; }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed, epoch, position, shuffle);
  }
  void scan() const override { below_->scan(); }
  uint64_t digest() const override;
  std::string advice() const override { return below_->advice(); }
  std::string replaced() const override { return below_->replaced(); }
  LabelRange labels() const override { return below_->labels(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return below_->tokenizer(); }
  std::string fitted() const override { return below_->fitted(); }
  int64_t memory_bytes() const override { return below_->memory_bytes(); }
  DatasetPtr with(const Transforms& added) const override;

  const DatasetPtr& below() const { return below_; }

 private:
  DatasetPtr below_;
  Transforms transforms_;
  std::string text_;
  // Of one sample, the row of `index`.
  RowDraws draws_of(const NamedTransform& transform, std::span<const int64_t> indices,
                    const Epoch& epoch) const;
  // Sample `index` after the first `one_by_one_` transforms.
  Batch one_sample(int64_t index, const Epoch& epoch) const;
  Batch decoded(int64_t index, const Epoch& epoch) const;

  SampleSpec spec_;
  std::size_t one_by_one_ = 0;          // transforms of samples of differing sizes
  const ImageFiles* images_ = nullptr;  // `below_`, if decoding the part for transform `decoding_`
  std::size_t decoding_ = 0;
  std::map<std::string, int64_t> masks_ = {};  // of `images_`, as of PixelArrays
};

// The dataset with transforms that algorithms add (State::add_transform): before to_tensor, or at the end if
// the dataset has no to_tensor. Throws UserError if samples do not suit.
DatasetPtr with_transforms(const DatasetPtr& dataset, const Transforms& added);

// The layout of samples that with_transforms leads to, for an algorithm to check.
SampleSpec spec_with(const Dataset& dataset, const Transforms& added);

}  // namespace tutti
