#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <string>

#include "collectives/group.h"

namespace tutti {

// Throws CollectiveError with NCCL's message unless `result` is a success.
void check_nccl(ncclResult_t result, const std::string& doing);

// A NCCL communicator over the ranks of a control group, and the CUDA stream on which its collectives run.
class NcclCommunicator {
 public:
  // Collective over `control`, which broadcasts the communicator's id. Uses the current CUDA device.
  explicit NcclCommunicator(Group& control);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  ncclComm_t comm() const { return comm_; }
  c10::cuda::CUDAStream stream() const { return stream_; }

  // Throws CollectiveError after an asynchronous error: a lost peer, a broken link.
  void check() const;

  // Aborts the collectives that hang on the device because ranks posted different ones.
  void abort();

 private:
  int rank_;
  int size_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace tutti
