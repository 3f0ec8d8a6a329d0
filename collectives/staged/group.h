#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "tensors/device.h"

namespace tutti {

// Collectives of tensors on a device, in the memory of the host: tensors are copied to pinned memory, a group
// of the host does the work, and results are copied back. So sums have the host group's bits, and a device
// needs neither NCCL nor an MPI that knows devices.
//
// Copies run on the current stream of the thread that uses the group, and start after the work that this
// stream waits for; the host waits for no copy. Tensors of the host are passed on unchanged.
class StagedGroup final : public Group {
 public:
  // `host`: a group of its own, with the same ranks.
  StagedGroup(std::shared_ptr<Group> host, const Device& device);

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int world_rank(int rank) const override { return host_->world_rank(rank); }
  bool ready() override { return host_->ready(); }
  // On the device.
  AllocationPtr allocate(int64_t bytes) override;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override;
  using Group::all_gather, Group::reduce_scatter;
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override;
  WorkPtr barrier(const std::string& label) override;
  int64_t moves() const override { return host_->moves() + moves_; }
  std::vector<int> late() const override { return host_->late(); }
  std::vector<CollectiveHeader> posted(int count) const override { return host_->posted(count); }

 private:
  class Staged;
  WorkPtr stage(std::shared_ptr<Staged> work);
  // Posts the collectives whose tensors are copied to the host, in the order of staging.
  void post_copied();

  std::shared_ptr<Group> host_;
  Device device_;
  std::deque<std::shared_ptr<Staged>> waiting_;  // not yet posted
  int64_t moves_ = 0;
};

}  // namespace tutti
