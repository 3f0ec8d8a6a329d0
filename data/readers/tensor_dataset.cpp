#include "data/readers/tensor_dataset.h"

#include <ATen/ATen.h>

#include "runtime/error.h"
#include "runtime/xxh3.h"

namespace tutti {

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

Batch TensorDataset::get(std::span<const int64_t> indices) const {
  const at::Tensor rows = at::tensor(at::IntArrayRef(indices.data(), indices.size()), at::kLong);
  return tensors_.map([&rows](const at::Tensor& tensor) { return tensor.index_select(0, rows); });
}

}  // namespace tutti
