#include "data/readers/transformed_dataset.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "data/transforms/geometry.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

// A batch of no samples, with the arrays of `batch` and of `spec` in the layout of `spec`.
Batch no_samples(Batch batch, const SampleSpec& spec) {
  for (const auto& [array, shape] : spec.shapes) {
    Shape sizes = shape;
    sizes.insert(sizes.begin(), 0);
    const TensorTree* given = batch.find(array);
    const auto dtype = spec.dtypes.find(array);
    const auto unknown = given ? given->tensor().scalar_type() : at::kFloat;
    batch.set(array, at::empty(sizes, dtype == spec.dtypes.end() ? unknown : dtype->second));
  }
  return batch;
}

// How many transforms lead to samples of one size; all if none does.
std::size_t until_one_size(const Transforms& transforms, SampleSpec samples) {
  std::size_t count = 0;
  for (; count < transforms.size() && !has_one_size(samples); ++count)
    samples = transforms[count].transform->spec(samples);
  return count;
}

Batch stacked(const std::vector<Batch>& samples) {
  TensorTree::Children arrays;
  for (const auto& [name, array] : samples[0].children()) {
    std::vector<at::Tensor> rows;
    for (const Batch& sample : samples) rows.push_back(sample[name]);
    arrays.emplace_back(name, at::cat(rows));
  }
  return arrays;
}

const GeometricTransform* geometric(const TransformPtr& transform) {
  return dynamic_cast<const GeometricTransform*>(transform.get());
}

}  // namespace

bool has_one_size(const SampleSpec& samples) {
  return std::ranges::none_of(samples.shapes, [](const auto& array) {
    return std::ranges::find(array.second, kUnknownSize) != array.second.end();
  });
}

TransformedDataset::TransformedDataset(DatasetPtr below, Transforms transforms, std::string text)
    : below_(std::move(below)),
      transforms_(std::move(transforms)),
      text_(std::move(text)),
      spec_(spec_after(transforms_, below_->spec())),
      one_by_one_(until_one_size(transforms_, below_->spec())) {
  const auto first = std::ranges::find_if(
      transforms_, [](const NamedTransform& one) { return one.transform->changes_input(); });
  if (first == transforms_.end() || !geometric(first->transform)) return;
  decoding_ = static_cast<std::size_t>(first - transforms_.begin());
  if (decoding_ < one_by_one_) images_ = dynamic_cast<const ImageFiles*>(below_.get());
  if (images_) masks_ = PixelArrays::of(images_->spec()).masks;
}

RowDraws TransformedDataset::draws_of(const NamedTransform& transform, std::span<const int64_t> indices,
                                      const Epoch& epoch) const {
  return [&transform, indices, epoch](int64_t row) {
    return make_draws(epoch.seed, {transform.name, epoch.number, indices[static_cast<std::size_t>(row)]});
  };
}

// The sample after transform `decoding_`.
Batch TransformedDataset::decoded(int64_t index, const Epoch& epoch) const {
  const GeometricTransform& transform = *geometric(transforms_[decoding_].transform);
  const RowDraws draws = draws_of(transforms_[decoding_], std::span(&index, 1), epoch);
  Geometry geometry;
  Batch sample = images_->get_part(index, [&](const ImageSize& whole) {
    geometry = transform.geometry(whole, *draws(0));
    return needed_part(geometry, whole);
  });
  const at::Tensor part = sample[kInputArray][0];
  sample.set(kInputArray, placed_part(part, geometry).unsqueeze(0));
  for (const auto& [name, height] : masks_)
    sample.set(name, placed_mask(sample[name][0], height, geometry).unsqueeze(0));
  return sample;
}

Batch TransformedDataset::one_sample(int64_t index, const Epoch& epoch) const {
  const std::span index_alone(&index, 1);
  Batch sample = images_ ? decoded(index, epoch) : below_->get(index_alone, epoch);
  for (std::size_t i = 0; i < one_by_one_; ++i) {
    if (images_ && i == decoding_) continue;
    transforms_[i].transform->apply(sample, draws_of(transforms_[i], index_alone, epoch));
  }
  return sample;
}

Batch TransformedDataset::get(std::span<const int64_t> indices, const Epoch& epoch) const {
  if (indices.empty()) return no_samples(below_->get(indices, epoch), spec_);
  Batch batch;
  if (one_by_one_ == 0) {
    batch = below_->get(indices, epoch);
  } else {
    std::vector<Batch> samples;
    for (const int64_t index : indices) samples.push_back(one_sample(index, epoch));
    batch = stacked(samples);
  }
  for (std::size_t i = one_by_one_; i < transforms_.size(); ++i)
    transforms_[i].transform->apply(batch, draws_of(transforms_[i], indices, epoch));
  return batch;
}

uint64_t TransformedDataset::digest() const {
  return XXH3_64bits_withSeed(text_.data(), text_.size(), below_->digest());
}

DatasetPtr TransformedDataset::with(const Transforms& added) const {
  std::string text = text_;
  for (const auto& [name, transform] : added) text += " " + name;
  return std::make_shared<const TransformedDataset>(below_, merged(transforms_, added), text);
}

DatasetPtr with_transforms(const DatasetPtr& dataset, const Transforms& added) {
  if (added.empty()) return dataset;
  if (DatasetPtr with = dataset->with(added)) return with;
  return std::make_shared<const TransformedDataset>(dataset, added, "");
}

SampleSpec spec_with(const Dataset& dataset, const Transforms& added) {
  const DatasetPtr with = dataset.with(added);
  return with ? with->spec() : spec_after(added, dataset.spec());
}

}  // namespace tutti
