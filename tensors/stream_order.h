#pragma once

#include <memory>

#include "tensors/device.h"

namespace c10 {
struct Event;
}

namespace tutti {

// A place in the work of a device's stream: everything that was launched before `record`. Travels in messages
// between actors, whose streams wait for each other's work where their threads do not. On the CPU, and if
// default-made, it is always over, and nothing waits.
class StreamOrder {
 public:
  StreamOrder() = default;
  // The work so far of this thread's current stream of the device.
  static StreamOrder record(const Device& device);

  // Later work of this thread's current stream begins when that work is over. The host does not wait.
  void wait() const;
  // True if that work is over. Never blocks.
  bool over() const;
  // Blocks the host until it is over.
  void synchronize() const;

 private:
  std::shared_ptr<const c10::Event> event_;
};

// A batch on its way to a device.
struct BatchCopy {
  Batch batch;  // on the device
  StreamOrder copied;
};

// Launches the copy of a batch of the host on this thread's current stream. The host does not wait: the
// numbers go through pinned memory. On the CPU the copy is the batch itself.
BatchCopy copy_to_device(const Batch& batch, const Device& device);

// The batch for this thread's current stream, which waits for the copy. The batch's memory stays until that
// stream's work on it is over.
Batch arrived(const BatchCopy& copy);

// Memory of the host, without values, that a device reads and writes while the host goes on; for the CPU
// plain memory.
at::Tensor staging_memory(at::IntArrayRef sizes, at::ScalarType dtype, const Device& device);

}  // namespace tutti
