#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "tensors/tree.h"

namespace c10 {
struct Event;
}

namespace tutti {

// Where a rank's tensors live and its kernels run: the CPU, or a device of an accelerator. Beyond a tensor's
// own device, the only place that knows kinds of devices: all other code uses libtorch's interfaces for every
// kind (c10::Stream, c10::Event, at::accelerator), so CUDA and the tests' device run the same code.
struct Device {
  c10::Device where{c10::kCPU};
  int memory_slot = 0;  // of the meter, which counts the rank's memory
  std::string name;     // "NVIDIA H100 80GB HBM3"; "" = CPU
  // The CPU in the place of a device, where its run is replayed.
  bool stands_in = false;

  // Of the arrays of a batch, without slot and name; the CPU for a batch without arrays.
  static Device of(const Batch& batch);

  bool is_cpu() const { return where.is_cpu(); }
  // True if ranks work as on a device: work is launched before the host knows the results of earlier work;
  // the exchanges between ranks follow from this order.
  bool runs_ahead() const { return !is_cpu() || stands_in; }

  // Of new tensors on this device.
  at::TensorOptions options(at::ScalarType dtype = at::kFloat) const {
    return at::TensorOptions(where).dtype(dtype);
  }

  // The same numbers on this device: the tensor itself if already there.
  at::Tensor take(const at::Tensor& tensor) const { return tensor.to(where); }
  Batch take(const Batch& batch) const;

  // Makes this the device of new work of this thread, on a stream of the thread's own, for good. Called by
  // every actor that uses tensors, with each message: a second call has no effect. Backward runs on the
  // calling thread: autograd's own threads for devices are shared by all ranks of a process, have other
  // streams, and limits of memory are a thread's.
  void use() const;

  // Blocks the host until the device's work is over, well or not: before freeing memory that several streams'
  // work may still use. The CPU's work is always over.
  void settle() const noexcept;
};

// A place in the work of a device's stream: all work launched before `record`. Travels in messages between
// actors, whose streams wait for each other's work where their threads do not. On the CPU, and if
// default-made, the work is always over, and no stream waits.
class StreamOrder {
 public:
  StreamOrder() = default;
  // The work so far of this thread's current stream of the device.
  static StreamOrder record(const Device& device);

  // Later work of this thread's current stream begins when that work is over. The host does not wait.
  void wait() const;
  // False if there is no work to wait for.
  explicit operator bool() const { return event_ != nullptr; }
  // True if that work is over. Never blocks.
  bool over() const;
  // Blocks the host until it is over.
  void synchronize() const;

 private:
  std::shared_ptr<const c10::Event> event_;
};

// The same numbers on a device, whose current stream copies them from pinned memory while the host continues;
// the tensor itself if already there, or on the CPU.
at::Tensor copy_to_device(const at::Tensor& tensor, c10::Device where);

// A batch on its way to a device.
struct BatchCopy {
  Batch batch;  // on the device
  StreamOrder copied;
};

// Launches the copy of a batch of the host on this thread's current stream. The host does not wait: the
// numbers go through pinned memory. On the CPU the copy is the batch itself.
BatchCopy copy_to_device(const Batch& batch, const Device& device);

// The batch for this thread's current stream, which waits for the copy. The batch's memory stays until that
// stream's work on the batch is over.
Batch arrived(const BatchCopy& copy);

// Memory of the host, without values, that a device reads and writes while the host continues; for the CPU
// plain memory.
at::Tensor staging_memory(at::IntArrayRef sizes, at::ScalarType dtype, const Device& device);

}  // namespace tutti
