#include "data/readers/synthetic_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/random.h"

namespace tutti {
namespace {

constexpr size_t kNormals = size_t{1} << 18;

// Box and Muller, "A note on the generation of random normal deviates" (1958).
std::vector<float> draw_normals(const RandomKey& draw) {
  std::vector<float> normals(kNormals);
  for (size_t i = 0; i < kNormals; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - draw.uniform(i)));
    const double angle = 2 * std::numbers::pi * draw.uniform(i + 1);
    normals[i] = static_cast<float>(radius * std::cos(angle));
    normals[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return normals;
}

}  // namespace

TensorDataset::TensorDataset(TensorTree tensors, int64_t classes)
    : tensors_(tensors.map([](const at::Tensor& tensor) { return tensor.contiguous(); })), classes_(classes) {
  for (const auto& [name, tensor] : tensors_.leaves()) {
    if (tensor.dim() == 0 || tensor.size(0) == 0) throw UserError("the tensor '" + name + "' has no rows");
    if (tensor.size(0) != size())
      throw UserError("the tensor '" + name + "' has " + std::to_string(tensor.size(0)) + " rows, and not " +
                      std::to_string(size()));
    digest_ = XXH3_64bits_withSeed(name.data(), name.size(), digest_);
    digest_ = XXH3_64bits_withSeed(tensor.const_data_ptr(), tensor.nbytes(), digest_);
  }
  if (size() == 0) throw UserError("a dataset of no tensors");
}

SampleSpec TensorDataset::spec() const {
  SampleSpec spec{.classes = classes_};
  for (const auto& [name, tensor] : tensors_.leaves()) {
    spec.shapes[name] = tensor.sizes().slice(1).vec();
    spec.dtypes[name] = tensor.scalar_type();
  }
  return spec;
}

Batch TensorDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  const at::Tensor rows = at::tensor(at::IntArrayRef(indices.data(), indices.size()), at::kLong);
  return tensors_.map([&rows](const at::Tensor& tensor) { return tensor.index_select(0, rows); });
}

SyntheticDataset::SyntheticDataset(const Options& options) : options_(options) {
  TUTTI_ASSERT(options.samples > 0 && options.classes > 0, "an empty dataset");
  if (options.targets == Targets::kClass)
    normals_ = draw_normals(RandomKey(options.seed, "synthetic inputs"));
  TUTTI_ASSERT(options.targets == Targets::kClass || options.shape.size() == 1,
               "a sequence has one dimension");
}

SampleSpec SyntheticDataset::spec() const {
  const bool labels = options_.targets == Targets::kClass;
  return {{{"input", options_.shape}, {"target", labels ? Shape{} : options_.shape}},
          options_.classes,
          {{"input", labels ? at::kFloat : at::kLong}, {"target", at::kLong}}};
}

Batch SyntheticDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  return options_.targets == Targets::kClass ? labelled(indices) : sequences(indices);
}

Batch SyntheticDataset::labelled(std::span<const int64_t> indices) const {
  Shape shape = options_.shape;
  shape.insert(shape.begin(), static_cast<int64_t>(indices.size()));
  const at::Tensor input = at::empty(shape, at::kFloat), target = at::empty({shape[0]}, at::kLong);
  auto* to = input.mutable_data_ptr<float>();
  auto* labels = target.mutable_data_ptr<int64_t>();
  const auto items = std::accumulate(shape.begin() + 1, shape.end(), size_t{1}, std::multiplies<>());
  for (const int64_t index : indices) {
    const RandomKey draw = RandomKey(options_.seed, "synthetic sample").fold_in(static_cast<uint64_t>(index));
    *labels++ = static_cast<int64_t>(draw.below(static_cast<uint64_t>(options_.classes)));
    size_t from = draw.below(kNormals, 1);
    for (size_t done = 0; done < items; from = 0) {
      const size_t count = std::min(items - done, kNormals - from);
      to = std::copy_n(normals_.data() + from, count, to);
      done += count;
    }
  }
  return TensorTree::Children{{"input", input}, {"target", target}};
}

Batch SyntheticDataset::sequences(std::span<const int64_t> indices) const {
  const int64_t length = options_.shape[0];
  const Shape shape = {static_cast<int64_t>(indices.size()), length};
  const at::Tensor input = at::empty(shape, at::kLong), target = at::empty(shape, at::kLong);
  auto* inputs = input.mutable_data_ptr<int64_t>();
  auto* targets = target.mutable_data_ptr<int64_t>();
  for (const int64_t index : indices) {
    const RandomKey draw =
        RandomKey(options_.seed, "synthetic sequence").fold_in(static_cast<uint64_t>(index));
    for (int64_t i = 0; i <= length; ++i) {
      const auto token =
          static_cast<int64_t>(draw.below(static_cast<uint64_t>(options_.classes), static_cast<uint64_t>(i)));
      if (i < length) inputs[i] = token;
      if (i > 0) targets[i - 1] = token;
    }
    inputs += length;
    targets += length;
  }
  return TensorTree::Children{{"input", input}, {"target", target}};
}

uint64_t SyntheticDataset::digest() const {
  RandomKey draw =
      RandomKey(options_.seed, "synthetic digest").fold_in(static_cast<uint64_t>(options_.samples));
  draw = draw.fold_in(static_cast<uint64_t>(options_.classes))
             .fold_in(options_.targets == Targets::kClass ? 0 : 1);
  for (const int64_t size : options_.shape) draw = draw.fold_in(static_cast<uint64_t>(size));
  return draw.bits();
}

DatasetPtr SyntheticOptions::make(const Setting& section, const DataEnvironment& environment) const {
  const bool sequence = targets == SyntheticTargets::kSequence;
  if (sequence && shape.size() != 1) section.at("shape").fail("a sequence has one dimension, its length");
  return std::make_shared<const SyntheticDataset>(
      SyntheticDataset::Options{.samples = samples,
                                .shape = shape,
                                .targets = targets,
                                .classes = sequence ? vocab : classes,
                                .seed = environment.seed});
}

}  // namespace tutti
