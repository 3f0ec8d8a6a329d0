#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/catalog.h"
#include "collectives/group.h"
#include "collectives/header_log.h"
#include "collectives/mpi/endpoint.h"
#include "collectives/mpi/meeting.h"
#include "collectives/mpi/operation.h"
#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

namespace tutti {

// Detects different collectives posted by ranks without shared memory. A rank that waits long for a
// collective sends its last headers to its neighbours: the ranks at distance 1, 2, 4, ..., so that a slow
// rank of a large group does not cause a flood. The rank that finds a difference sends an alarm, which is
// forwarded.
class HeaderExchange {
 public:
  // `ranks`: the global numbers of the group's ranks. Collective.
  HeaderExchange(const MpiComm& comm, std::vector<int> ranks);

  // Sends the last posted headers to the neighbours.
  void send_headers(const HeaderLog& log);

  // Receives headers and compares all received headers with `log`. Throws CollectiveError.
  void check_received(const HeaderLog& log);

  // Sends `text`, the reason to stop, to the neighbours.
  void send_alarm(const std::string& text);

 private:
  static constexpr int kHeaders = 16;

  std::vector<int> neighbours() const;
  void send(const std::string& packet);
  void handle(const std::string& packet, int from);
  void compare(int from, const std::vector<CollectiveHeader>& theirs, const HeaderLog& log) const;

  MpiComm comm_;
  std::vector<int> ranks_;
  int rank_ = 0;
  bool alarm_sent_ = false;
  std::map<int, std::vector<CollectiveHeader>> headers_;  // last received, by rank
  Outgoing outgoing_;
};

// A group of MPI ranks, for CPU tensors. Sums are a balanced binary tree over rank order: the same bits on
// every backend, run and host layout. The ranks of a host work in shared memory, and only sums of subtrees
// cross hosts.
//
// Neighbours read inputs in place, if all ranks of a host have their inputs in the memory of one `allocate`
// (an empty tensor is in the memory of its storage) and, for all_gather and broadcast, the group is on one
// host. Else, and if all the data is small, inputs are first copied to memory that the host shares. Outputs
// may lie anywhere.
//
// Posting, or Work::done() of any work of the group, advances all collectives. At most ControlWindow::kSlots
// collectives are in progress at once; more may be posted, and wait.
//
// The ranks of a group meet by messages that `ready` polls. The calls of MPI that make its communicators and
// windows follow, and block for as long as these calls take on ranks that are all there.
//
// Errors: a collective that differs from a neighbour's on the same host, as soon as both collectives are
// posted; a collective that differs across hosts, at most a second after its post; a dead
// process on this host, a member's or not, a tenth of a second after a collective began to wait. After an
// error the group cannot be used.
class MpiGroup final : public Group {
 public:
  static constexpr Nanoseconds kTimeout = std::chrono::milliseconds(500);

  // Of `ranks` (global, ascending, with this rank). World and clock must outlive the group.
  MpiGroup(const MpiWorld& world, const Clock& clock, const std::vector<int>& ranks);
  ~MpiGroup() override;

  int rank() const override { return layout_.rank(); }
  int size() const override { return layout_.size(); }
  int world_rank(int rank) const override { return ranks_[rank]; }
  bool ready() override;
  AllocationPtr allocate(int64_t bytes) override;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override;
  using Group::all_gather, Group::reduce_scatter;
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override;
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override;
  WorkPtr barrier(const std::string& label) override;
  int64_t moves() const override { return moves_; }
  std::vector<int> late() const override;
  std::vector<CollectiveHeader> posted(int count) const override { return log_.last(count); }
  std::optional<int> lost_rank() const override { return world_.lost_peer(); }

  // Advances all collectives; never blocks. Throws CollectiveError.
  void progress();

 private:
  class WindowAllocation;
  WorkPtr post(CollectiveKind kind, CollectiveJob job, const std::string& label);
  std::shared_ptr<Operation> make_operation(CollectiveJob job);
  void advance_operations();
  void watch();
  void check_for_lost_peer() const;

  const MpiWorld& world_;
  const Clock& clock_;
  std::vector<int> ranks_;
  HostLayout layout_;
  std::optional<GroupMeeting> meeting_;  // while the ranks meet
  std::optional<MpiEndpoint> endpoint_;  // once they have
  HeaderLog log_;
  std::optional<HeaderExchange> exchange_;  // if not all ranks share control slots

  struct Active {
    std::shared_ptr<Operation> operation;
    TimePoint since;
    bool reported = false;
  };
  std::list<Active> active_;  // oldest first
  int64_t moves_ = 0;
  TimePoint next_check_{};
  std::string failure_;
};

// The mpi backend. Groups of one rank are LocalGroups. World and clock must outlive all groups.
class MpiGroupFactory final : public GroupFactory {
 public:
  MpiGroupFactory(const MpiWorld& world, const Clock& clock) : world_(world), clock_(clock) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::unique_ptr<Group> make(const std::vector<int>& ranks) override;

 private:
  const MpiWorld& world_;
  const Clock& clock_;
};

}  // namespace tutti
