#include "sim/environment/watched_dataset.h"

#include <ATen/core/Tensor.h>

namespace tutti {
namespace {

const void* memory_of(const Batch& batch) { return batch.leaves().front().second.const_data_ptr(); }

}  // namespace

Batch WatchedDataset::get(std::span<const int64_t> indices) const {
  Batch batch = below_->get(indices);
  if (!indices.empty()) batches_[memory_of(batch)] = {indices.begin(), indices.end()};
  return batch;
}

std::vector<int64_t> WatchedDataset::indices_of(const Batch& batch) const {
  if (batch.samples() == 0) return {};
  const auto found = batches_.find(memory_of(batch));
  if (found == batches_.end()) return std::vector<int64_t>(batch.samples(), -1);
  return found->second;
}

}  // namespace tutti
