#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/cut.h"
#include "collectives/device/equal_parts.h"
#include "collectives/device/launched.h"
#include "collectives/device_library.h"
#include "collectives/group.h"
#include "collectives/header_log.h"
#include "tensors/device.h"

namespace tutti {

// Collectives of tensors on a device, by the device's own library: NCCL, or the library of the tests' device.
// The library sums: of two ranks with the ordered sum's bits; of more ranks NCCL's bits may differ.
//
// A collective is launched when posted, on the current stream of the calling thread, which is the same for
// all collectives: the work starts after the work that this stream waits for, and the collectives posted
// before. A collective is done when all ranks have posted the same header, compared over a group of the host.
// `results` then still come, and depend on devices alone: all ranks have launched the earlier work of the
// devices too. Parts of one size that lie side by side are gathered and summed in place; other parts by way
// of memory of the group (`reserve`), which also receives the data of a rank without destination.
//
// Tensors of the host are passed on to the group of the host; so are barriers.
//
// A device would wait for ever for a lost rank, or a rank that posts another collective. Then collectives in
// progress are aborted, and the error is thrown; the group cannot be used afterwards.
class DeviceGroup final : public Group {
 public:
  // `control`: a group of the host of its own, with the same ranks. `launched`: of all groups of the rank.
  // Ranks are connected when all ranks have called `ready` until true.
  DeviceGroup(std::shared_ptr<Group> control, const Device& device,
              std::shared_ptr<const DeviceLibrary> library, std::shared_ptr<Launched> launched);
  ~DeviceGroup() override;

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  int world_rank(int rank) const override { return control_->world_rank(rank); }
  AllocationPtr allocate(int64_t bytes) override;  // on the device
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override;
  using Group::all_gather, Group::reduce_scatter;
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override;
  WorkPtr barrier(const std::string& label) override;
  int64_t moves() const override { return control_->moves() + static_cast<int64_t>(matched_); }
  std::vector<int> late() const override { return control_->late(); }
  std::vector<CollectiveHeader> posted(int count) const override { return log_.last(count); }

  bool ready() override;
  bool runs_on_stream() const override { return true; }
  void reserve(const Cut& cut, std::size_t item) override;
  void check() override;
  void abandon() override;

 private:
  class DeviceWork;
  template <class Launch>
  WorkPtr post(CollectiveKind kind, CollectiveJob job, const std::string& label, Launch launch);
  void scatter(const CollectiveJob& job);
  void gather(const CollectiveJob& job);
  at::Tensor memory(const EqualParts& parts, const at::Tensor& like);
  void share_id();
  void connect();
  void abort() noexcept;

  std::shared_ptr<Group> control_;
  Device device_;
  std::shared_ptr<const DeviceLibrary> library_;
  std::shared_ptr<Launched> launched_;
  std::vector<int> ranks_;  // of the world
  at::Tensor id_;           // uint8, of the host; while ranks share it
  WorkPtr sharing_;
  std::unique_ptr<Communicator> communicator_;
  bool connected_ = false, aborted_ = false;
  at::Tensor memory_;  // uint8, of the device
  HeaderLog log_;
  StreamOrder last_;           // the newest collective
  std::size_t matched_ = 0;    // collectives that all ranks have posted
  std::size_t unmatched_ = 0;  // and others
};

}  // namespace tutti
