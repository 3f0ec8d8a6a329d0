#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <optional>

#include "tensors/device.h"

namespace tutti {

// Enables libtorch's autocast of a kind of device to `dtype` (bfloat16 or float16) on this thread during the
// object's lifetime; nullopt disables autocast.
//
// Autocast's cache of cast weights is disabled, since all ranks of a process would share that cache.
//
// On CPUs an LSTM without kernels of that dtype computes in float32, whoever calls aten::lstm.
class AutocastScope {
 public:
  explicit AutocastScope(std::optional<at::ScalarType> dtype, const Device& device = {});
  ~AutocastScope();

  // The dtype of autocast on this thread; nullopt: disabled.
  static std::optional<at::ScalarType> current(const Device& device);
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType type_;
  bool enabled_, cached_;
  at::ScalarType dtype_;
};

// True if LSTMs on CPUs compute in `dtype` under autocast: oneDNN has none of float16, and of bfloat16 on
// processors with AVX512 alone.
bool has_lstm_on_cpus(at::ScalarType dtype);

// Calls a function each time that backward has accumulated the gradient of a leaf; null: no more.
void set_gradient_hook(const at::Tensor& leaf, std::function<void()> on_gradient);

// Frees the memory that a backward interrupted by an exception leaves in the thread's autograd queue.
// Autograd drops stale entries only when a later backward with older work runs, so `run` runs a backward over
// two nodes that the constructor made.
class AutogradSweep {
 public:
  // Construct on the thread that runs backward, before the first backward.
  AutogradSweep();
  void run();

 private:
  at::Tensor leaf_, root_;
};

}  // namespace tutti
