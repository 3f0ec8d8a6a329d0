#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <string>

#include "collectives/group.h"

namespace tutti {

// Throws CollectiveError with NCCL's own words unless `result` is a success.
void check_nccl(ncclResult_t result, const std::string& doing);

// A NCCL communicator over the ranks of a control group, and the CUDA stream on which its collectives run.
class NcclCommunicator {
 public:
  // Collective over `control`, which carries the communicator's id from its rank 0. Uses the current CUDA
  // device.
  explicit NcclCommunicator(Group& control);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  ncclComm_t comm() const { return comm_; }
  c10::cuda::CUDAStream stream() const { return stream_; }

  // Throws CollectiveError when something failed in the background: a lost peer, a broken link.
  void check() const;

  // Ends what hangs on the device because the ranks posted different collectives.
  void abort();

 private:
  int rank_;
  int size_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace tutti
