#include "models/layers/statistics_rows.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <string>

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

const StatisticsRows::Place& StatisticsRows::place_of(const RunningStatistics& statistics) const {
  const auto known = index_.find(statistics.layer);
  TUTTI_ASSERT(known != index_.end(),
               std::string(statistics.layer->kind()) +
                   " found running statistics, but was not in the model, or had none, when training began");
  const Place& place = places_[known->second];
  TUTTI_ASSERT(statistics.numbers.numel() == place.size,
               std::string(statistics.layer->kind()) + " found " +
                   std::to_string(statistics.numbers.numel()) +
                   " running statistics, but its statistics_size is " + std::to_string(place.size));
  return place;
}

// `numbers`: of what the layer found, if it is not on the host.
void StatisticsRows::add(const RunningStatistics& statistics, const at::Tensor& rows, int64_t index,
                         std::span<const double> numbers) const {
  const at::NoGradGuard no_grad;  // rows that kept the pass's graph would be part of it, and never be freed
  const Place& place = place_of(statistics);
  const int64_t first = index * size_ + place.first;
  float* const row = rows.data_ptr<float>() + first;
  if (row[0] == 0 && !numbers.empty()) {  // without tensor operations: a net has many layers
    std::ranges::transform(numbers, row + 1, [](double number) { return static_cast<float>(number); });
  } else {
    RunningStatistics joined = statistics, so_far{place.layer, rows.narrow(0, first + 1, place.size),
                                                  static_cast<int64_t>(row[0])};
    if (!numbers.empty())
      joined.numbers = at::tensor(at::ArrayRef<double>(numbers.data(), numbers.size()), at::kFloat);
    if (so_far.calls == 0)
      so_far.numbers.copy_(joined.numbers);
    else
      place.layer->join_statistics(so_far, joined);
  }
  row[0] += static_cast<float>(statistics.calls);
}

void StatisticsRows::add(const std::vector<RunningStatistics>& statistics, const at::Tensor& rows,
                         int64_t index) const {
  for (const RunningStatistics& layer_statistics : statistics) add(layer_statistics, rows, index, {});
}

void StatisticsRows::add(const std::vector<RunningStatistics>& statistics, const at::Tensor& rows,
                         int64_t index, LateNumbers& numbers) const {
  if (statistics.empty() || statistics.front().numbers.is_cpu()) return add(statistics, rows, index);
  std::vector<at::Tensor> all;
  for (const RunningStatistics& layer_statistics : statistics) all.push_back(layer_statistics.numbers);
  numbers.add(at::cat(all), [this, statistics, rows, index](std::span<const double> values) {
    for (const RunningStatistics& layer_statistics : statistics) {
      const auto count = static_cast<std::size_t>(place_of(layer_statistics).size);
      add(layer_statistics, rows, index, values.first(count));
      values = values.subspan(count);
    }
  });
}

void StatisticsRows::apply(const at::Tensor& rows, const Device& device) const {
  const at::Tensor flat = rows.view({-1});
  for (int64_t begin = 0; begin < flat.numel(); begin += size_) {
    const at::Tensor row = flat.narrow(0, begin, size_);
    BufferUpdates updates(row, row.to(device.where, /*non_blocking=*/true));
    for (const Place& place : places_) {
      const auto calls = static_cast<int64_t>(row.const_data_ptr<float>()[place.first]);
      if (calls > 0)
        place.layer->apply_statistics({place.layer, row.narrow(0, place.first + 1, place.size), calls},
                                      updates);
    }
    updates.run();
  }
}

void apply(const RunningStatistics& statistics) {
  BufferUpdates updates(statistics.numbers, statistics.numbers);
  statistics.layer->apply_statistics(statistics, updates);
  updates.run();
}

}  // namespace tutti
