#include "models/layers/statistics_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <utility>

#include "models/layers/buffer_updates.h"
#include "runtime/error.h"

namespace tutti {

StatisticsRows::StatisticsRows(Layer& model) {
  for (const auto& [name, layer] : layers(model)) {
    const int64_t numbers = layer->statistics_size();
    if (numbers == 0) continue;
    index_[layer] = places_.size();
    places_.push_back({layer, layer->weak_from_this().lock(), size_, numbers});
    size_ += 1 + numbers;
  }
}

void StatisticsRows::add(const std::vector<RunningStatistics>& found, const at::Tensor& rows,
                         int64_t index) const {
  for (const RunningStatistics& one : found) {
    const auto known = index_.find(one.layer);
    TUTTI_ASSERT(known != index_.end(),
                 std::string(one.layer->kind()) +
                     " found running statistics, but was not in the model, or had none, when training began");
    const Place& place = places_[known->second];
    const int64_t first = index * size_ + place.first;
    float& calls = rows.data_ptr<float>()[first];
    RunningStatistics so_far{place.layer, rows.narrow(0, first + 1, place.size), static_cast<int64_t>(calls)};
    if (so_far.calls == 0)
      so_far.numbers.copy_(one.numbers);
    else
      place.layer->join_statistics(so_far, one);
    calls += static_cast<float>(one.calls);
  }
}

void StatisticsRows::add(const std::vector<RunningStatistics>& found, const at::Tensor& rows, int64_t index,
                         LateNumbers& numbers) const {
  if (found.empty() || found.front().numbers.is_cpu()) return add(found, rows, index);
  std::vector<at::Tensor> all;
  for (const RunningStatistics& one : found) all.push_back(one.numbers);
  numbers.add(at::cat(all), [this, found = std::vector<RunningStatistics>(found), rows,
                             index](std::span<const double> values) mutable {
    const at::Tensor host = at::tensor(at::ArrayRef<double>(values.data(), values.size()), at::kFloat);
    int64_t first = 0;
    for (RunningStatistics& one : found) {
      const int64_t size = one.numbers.numel();
      one.numbers = host.narrow(0, std::exchange(first, first + size), size);
    }
    add(found, rows, index);
  });
}

void StatisticsRows::apply(const at::Tensor& rows, const Device& device) const {
  const at::Tensor flat = rows.view({-1});
  BufferUpdates updates(flat, flat.to(device.where, /*non_blocking=*/true));
  for (int64_t row = 0; row < flat.numel(); row += size_) {
    for (const Place& place : places_) {
      const auto calls = static_cast<int64_t>(flat.const_data_ptr<float>()[row + place.first]);
      if (calls > 0)
        place.layer->apply_statistics({place.layer, flat.narrow(0, row + place.first + 1, place.size), calls},
                                      updates);
    }
    updates.run();
  }
}

void apply(const RunningStatistics& found) {
  BufferUpdates updates(found.numbers, found.numbers);
  found.layer->apply_statistics(found, updates);
  updates.run();
}

}  // namespace tutti
