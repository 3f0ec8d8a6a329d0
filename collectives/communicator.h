#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tutti {

// Names a communicator that ranks are about to make. As large as ncclUniqueId.
struct CommunicatorId {
  char bytes[128] = {};
};

// Collectives of tensors on one device, as NCCL has them. Made by the library of a kind of device
// (collectives/device_entry.h). Tensors are flat. A call launches work on the calling thread's current stream
// and returns; all calls of a communicator use one stream.
//
// All ranks make the same calls in the same order. Over all communicators of a rank there is one order of
// calls, the same on all ranks. Otherwise devices wait for each other for ever, until abort().
class Communicator {
 public:
  virtual ~Communicator() = default;

  // False while ranks still connect; no other call but abort() is allowed then. Never blocks.
  virtual bool ready() = 0;

  virtual void all_reduce(const at::Tensor& inout) = 0;
  // The whole is as large as the parts of all ranks. A part may lie at its place in the whole.
  virtual void reduce_scatter(const at::Tensor& whole, const at::Tensor& part) = 0;
  virtual void all_gather(const at::Tensor& part, const at::Tensor& whole) = 0;
  virtual void broadcast(const at::Tensor& inout, int root) = 0;

  // An asynchronous error, after which no collective ends: a broken link, calls that differ. "": none is
  // known. Never blocks.
  virtual std::string failure() = 0;

  // Ends collectives in progress; their outputs have no meaning. No calls may follow.
  virtual void abort() noexcept = 0;
};

}  // namespace tutti
