#include "data/readers/transformed_dataset.h"

#include <ATen/ops/empty.h>

#include <utility>

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

}  // namespace

TransformedDataset::TransformedDataset(DatasetPtr below, Transforms transforms, std::string text)
    : below_(std::move(below)),
      transforms_(std::move(transforms)),
      text_(std::move(text)),
      spec_(spec_after(transforms_, below_->spec())) {}

Batch TransformedDataset::get(std::span<const int64_t> indices, const Epoch& epoch) const {
  Batch batch = below_->get(indices, epoch);
  if (indices.empty()) return no_samples(std::move(batch), spec_);
  for (const auto& [name, transform] : transforms_)
    transform->apply(batch, [&](int64_t row) {
      return make_draws(epoch.seed, {name, epoch.number, indices[static_cast<std::size_t>(row)]});
    });
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
