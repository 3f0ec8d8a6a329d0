#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

#include "tensors/tree.h"

namespace tutti {

// Where a rank's tensors live and its kernels run: the CPU, or a device of an accelerator. Beyond a tensor's
// own device, the only place that knows kinds of devices: all else uses libtorch's interfaces that are alike
// for all of them (c10::Stream, c10::Event, at::accelerator), so what runs on CUDA is what runs on the tests'
// device.
struct Device {
  c10::Device where{c10::kCPU};
  int memory_slot = 0;  // of the meter, which counts the rank's memory
  std::string name;     // "NVIDIA H100 80GB HBM3"; "" = CPU

  bool is_cpu() const { return where.is_cpu(); }

  // Of new tensors on this device.
  at::TensorOptions options(at::ScalarType dtype = at::kFloat) const {
    return at::TensorOptions(where).dtype(dtype);
  }

  // The same numbers on this device: the tensor itself if it is there.
  at::Tensor take(const at::Tensor& tensor) const { return tensor.to(where); }
  Batch take(const Batch& batch) const;

  // Makes this the device of new work of this thread, on a stream of the thread's own, for good. Called by
  // every actor that uses tensors, with each message: a second call does nothing. Backward runs on the thread
  // that calls it: autograd's own threads for devices are shared by all ranks of a process, have other
  // streams, and limits of memory are a thread's.
  void use() const;
};

}  // namespace tutti
