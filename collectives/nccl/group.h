#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "collectives/header_log.h"

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

// A NCCL group of ranks with a GPU each, for CUDA tensors on the device that is current when the group is
// made. Sums are native. A collective starts after the work queued before it on the caller's current stream,
// and runs concurrently with later work. Once `done()`, its results may be used on any stream. A rank without
// destination receives into memory of the device, for the time of the collective.
//
// The posted headers are compared over `control`, a CPU group of the same ranks, which must outlive this
// group and be used by the same thread. After an error the group cannot be used.
class NcclGroup final : public Group {
 public:
  explicit NcclGroup(Group& control);  // collective

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  int world_rank(int rank) const override { return control_.world_rank(rank); }
  at::Tensor allocate(int64_t bytes) override;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override;
  using Group::all_gather, Group::reduce_scatter;
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override;
  WorkPtr barrier(const std::string& label) override;
  std::vector<CollectiveHeader> posted(int count) const override { return log_.last(count); }

 private:
  using Launch = std::function<ncclResult_t(const CollectiveJob&, ncclComm_t, cudaStream_t)>;
  WorkPtr post(CollectiveKind kind, CollectiveJob job, const std::string& label, const Launch& launch);
  void complete(CollectiveJob& job) const;

  Group& control_;
  c10::Device device_;
  NcclCommunicator communicator_;
  HeaderLog log_;
};

}  // namespace tutti
