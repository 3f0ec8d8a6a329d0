#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "tensors/device.h"

namespace tutti {

// Copies of this rank's pieces of a checkpoint in memory of the host, written to the disk while the training
// continues. The memory is allocated before the first step and kept.
//
// From a device, copies come on this thread's current stream, through a ring of pinned memory, of which a
// system has little: pieces that fit into the ring are read from the device without the host, the other
// pieces as the ring empties.
class CheckpointCopies {
 public:
  // `ring_bytes`: at most, of pinned memory.
  explicit CheckpointCopies(const Device& device, int64_t ring_bytes = int64_t{512} << 20)
      : device_(device), most_ring_bytes_(ring_bytes) {}

  // Allocates memory for copies of these pieces. Returns its bytes.
  int64_t reserve(const std::vector<CheckpointPiece>& pieces);
  // Writes the memory once, so that the system gives the pages now: at the first copy that would cost a
  // step's time.
  void touch();

  // Gives the pieces copies of their tensors. Once the result is over, the tensors may change; once finish()
  // has returned, the copies have their values.
  StreamOrder copy(std::vector<CheckpointPiece>& pieces);
  void finish();

 private:
  // A block of pinned memory, and the parts of copies that the block holds.
  struct Slot {
    struct Part {
      at::Tensor from, to;  // in the slot, in the copy; flat
    };
    at::Tensor pinned;  // bytes
    int64_t used = 0;
    std::vector<Part> parts = {};
    StreamOrder filled = {};
  };

  at::Tensor& copy_of(const CheckpointPiece& piece);
  void pass(const at::Tensor& from, const at::Tensor& to);
  void next_slot();
  void empty(Slot& slot);

  Device device_;
  int64_t most_ring_bytes_;
  std::map<std::string, at::Tensor> copies_;  // by piece name
  std::vector<Slot> ring_;                    // none on the CPU
  std::size_t filling_ = 0;                   // a place in the ring: the oldest slot is the next one
};

}  // namespace tutti
