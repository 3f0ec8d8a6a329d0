#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/layers/layer.h"
#include "tensors/device.h"
#include "tensors/late_numbers.h"

namespace tutti {

// The running statistics of a model's layers as rows of numbers, one row for each microbatch, which ranks
// gather. Each layer with statistics has a place in the row: the number of its calls, then its numbers.
class StatisticsRows {
 public:
  // Layers inserted by later surgery have no place.
  explicit StatisticsRows(Layer& model);

  int64_t size() const { return size_; }  // of a row; 0: no layer has statistics

  // Adds the layers' numbers, in the order of their calls, to row `index` of `rows`, float32 [any number *
  // size], initially zeros. Calls of one layer are joined. Asserts that each layer has a place, so that no
  // numbers are lost. `rows` is the host's; numbers.read() adds a device's numbers.
  void add(const std::vector<RunningStatistics>& statistics, const at::Tensor& rows, int64_t index,
           LateNumbers& numbers) const;
  // The same without a device.
  void add(const std::vector<RunningStatistics>& statistics, const at::Tensor& rows, int64_t index) const;

  // Applies rows of the host in order, a row layer by layer in model order, to buffers that are on the
  // device: rows in pinned memory need no wait of the host. Allocates one row at a time on the device, and
  // only views on the CPU.
  void apply(const at::Tensor& rows, const Device& device = {}) const;

 private:
  struct Place {
    Layer* layer = nullptr;
    std::shared_ptr<Layer> kept;  // a shared layer, which surgery may throw away
    int64_t first = 0;
    int64_t size = 0;  // of the numbers
  };

  const Place& place_of(const RunningStatistics& statistics) const;
  void add(const RunningStatistics& statistics, const at::Tensor& rows, int64_t index,
           std::span<const double> numbers) const;

  std::vector<Place> places_;
  std::unordered_map<const Layer*, std::size_t> index_;
  int64_t size_ = 0;
};

// The numbers of one call, for layers that are used outside of training.
void apply(const RunningStatistics& statistics);

}  // namespace tutti
