#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace tutti {

// Updates of buffers by numbers that ranks have gathered on the host. The CPU's buffers are updated at once;
// updates of a device's buffers are kept, and made by `run` with a few launches for all layers together.
class BufferUpdates {
 public:
  // `numbers`: of the host, with one dimension; `on_device`: a copy of the numbers, where the buffers are.
  BufferUpdates(const at::Tensor& numbers, const at::Tensor& on_device)
      : numbers_(numbers), on_device_(on_device) {}

  // buffer = (1 - weight) buffer + weight x, where x are the numbers from `first` on, as many as the buffer
  // has. `numbers`: of the host, and part of the constructor's if the buffer is on a device.
  void average(const at::Tensor& buffer, const at::Tensor& numbers, int64_t first, double weight);
  // buffer += number
  void add(const at::Tensor& buffer, int64_t number);

  // Makes the updates that are kept. Call before a buffer is updated for the second time.
  void run();

 private:
  struct Averages {
    std::vector<at::Tensor> buffers, numbers;
  };

  at::Tensor numbers_, on_device_;
  std::map<double, Averages> averages_;              // by weight
  std::map<int64_t, std::vector<at::Tensor>> sums_;  // by number
};

}  // namespace tutti
