#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "collectives/header_log.h"
#include "collectives/nccl/communicator.h"

namespace tutti {

// A group of ranks with a GPU each, over NCCL: CUDA tensors on the device that was current when it was made,
// native reduction. A collective starts when the work queued before it on the caller's current stream is
// done, and runs beside what comes after; once `done()` its results may be used on any stream.
//
// What ranks post is compared over `control`, a group of the same ranks on the CPU, which outlives this one
// and is used by the same thread. From the first error on the group is dead.
class NcclGroup final : public Group {
 public:
  explicit NcclGroup(Group& control);  // collective

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  at::Tensor allocate(int64_t bytes) override;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override;
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, const std::string& label) override;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, const std::string& label) override;
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override;
  WorkPtr barrier(const std::string& label) override;
  std::vector<CollectiveHeader> posted(int count) const override { return log_.last(count); }

 private:
  using Launch = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  WorkPtr post(CollectiveKind kind, const std::vector<at::Tensor>& tensors, const std::string& label,
               const Launch& launch);

  Group& control_;
  c10::Device device_;
  NcclCommunicator communicator_;
  HeaderLog log_;
};

}  // namespace tutti
