#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "tensors/device.h"

namespace tutti {

// Copies of this rank's pieces of a checkpoint in memory of the host, from which they are written while the
// training goes on. The memory is allocated before the first step and kept.
//
// From a device they come on this thread's current stream, through a ring of pinned memory, of which a system
// has little: what fits into the ring is read from the device without the host, the rest as the ring empties.
class CheckpointCopies {
 public:
  // `ring_bytes`: at most, of pinned memory.
  explicit CheckpointCopies(const Device& device, int64_t ring_bytes = int64_t{512} << 20)
      : device_(device), most_ring_bytes_(ring_bytes) {}

  // Allocates memory for copies of these pieces. Returns its bytes.
  int64_t reserve(const std::vector<CheckpointPiece>& pieces);
  // Writes the memory once: the system gives it then, which would take a step's time at the first copy.
  void touch();

  // Gives the pieces copies of their tensors. Once the result is over, the tensors may change; once finish()
  // has returned, the copies have their values.
  StreamOrder copy(std::vector<CheckpointPiece>& pieces);
  void finish();

 private:
  // A part of a tensor in the ring, on its way to the host's memory.
  struct Passing {
    at::Tensor pinned, to;  // flat
    int64_t begin = 0, end = 0;
    StreamOrder copied;
  };

  at::Tensor& copy_of(const CheckpointPiece& piece);
  void pass(const at::Tensor& from, const at::Tensor& to);
  int64_t make_room(int64_t bytes);
  void take_oldest();

  Device device_;
  int64_t most_ring_bytes_;
  std::map<std::string, at::Tensor> copies_;  // by piece name
  at::Tensor ring_;                           // bytes; undefined on the CPU
  std::deque<Passing> passing_;
};

}  // namespace tutti
