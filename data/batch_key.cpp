#include "data/batch_key.h"

#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {

const at::Tensor& BatchKey::get(const Batch& batch) const { return batch[name_in(batch)]; }

void BatchKey::set(Batch& batch, at::Tensor tensor) const { batch.set(name_in(batch), std::move(tensor)); }

std::string BatchKey::name_in(const Batch& batch) const {
  const TensorTree::Children& arrays = batch.children();
  std::string names;
  for (int64_t i = 0; i < std::ssize(arrays); ++i) {
    const std::string& name = arrays[static_cast<std::size_t>(i)].first;
    if (name_.empty() ? i == number_ : name == name_) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  const std::string array = name_.empty() ? "array number " + std::to_string(number_) : "'" + name_ + "'";
  throw UserError("no " + array + " in the batch; there is " + (names.empty() ? "nothing" : names));
}

}  // namespace tutti
