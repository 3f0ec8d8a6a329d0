#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/mpi/shared_window.h"
#include "collectives/mpi/world.h"
#include "collectives/ordered_sum.h"

namespace tutti {

// How a group's ranks lie on hosts, and who speaks for a host. A host need not hold contiguous ranks: then it
// has more subtrees, and the sums keep their bits.
class HostLayout {
 public:
  // `host_of`: a number per rank of the group, equal where ranks share memory.
  HostLayout(std::vector<int> host_of, int rank);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(hosts_.size()); }
  int host() const { return host_of_[rank_]; }
  int host_of(int rank) const { return host_of_[rank]; }
  bool here(int rank) const { return host_of_[rank] == host(); }

  // The ranks of a host, ascending; a rank's place in its host's list is its local number.
  const std::vector<int>& ranks_of(int host) const { return hosts_[host]; }
  const std::vector<int>& neighbours() const { return hosts_[host()]; }
  int local_of(int rank) const { return local_of_[rank]; }

  // Who on `host` sends that host's part of what rank `owner` sums, and takes in the result: the owner itself
  // at home, else the rank with its local number, so that the work is spread alike everywhere.
  int delegate(int host, int owner) const;

  // The subtrees of the ordered sum over the whole group that `host` can sum by itself.
  const std::vector<RankRange>& subtrees(int host) const { return subtrees_[host]; }

 private:
  int rank_;
  std::vector<int> host_of_;  // renumbered by lowest rank
  std::vector<int> local_of_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::vector<RankRange>> subtrees_;
};

// A rank's endpoint in a group: what its operations work with.
class MpiEndpoint {
 public:
  // How many pieces of a large collective may be between two ranks at once.
  static constexpr int kBuffers = 4;

  // Collective over `ranks` (ascending, of the world).
  MpiEndpoint(const MpiWorld& world, std::vector<int> ranks);

  const HostLayout& layout() const { return layout_; }
  int world_rank(int rank) const { return ranks_[rank]; }
  const MpiComm& comm() const { return messages_; }
  MPI_Comm messages() const { return messages_.get(); }
  MPI_Comm guards() const { return guards_.get(); }
  MPI_Comm host_comm() const { return host_comm_.get(); }

  // Control slots of the ranks of this host.
  int locals() const { return static_cast<int>(layout_.neighbours().size()); }
  int local() const { return layout_.local_of(layout_.rank()); }
  ControlSlot& slot(int local, uint64_t sequence) const { return control_.slot(local, sequence); }
  ControlSlot& own_slot(uint64_t sequence) const { return control_.slot(local(), sequence); }

  // Large collectives are cut into pieces of size() chunks of at most chunk_bytes() each.
  int64_t chunk_bytes() const { return chunk_bytes_; }
  int64_t piece_bytes() const { return chunk_bytes_ * layout_.size(); }
  std::byte* scratch(int local, int64_t piece) const;

  // Windows that `allocate` made, by number; one whose tensors are all gone is null.
  void add_window(const std::shared_ptr<SharedWindow>& window) { windows_.push_back(window); }
  std::shared_ptr<SharedWindow> window(uint64_t number) const { return windows_[number].lock(); }
  std::optional<uint64_t> window_of(const void* data, int64_t bytes) const;

  // Scratch serves one collective at a time, in the order posted: a large one queues when it is made, and
  // gives up its turn when it turns out not to need scratch, or is through.
  void queue_for_scratch(uint64_t sequence) { scratch_queue_.push_back(sequence); }
  bool may_use_scratch(uint64_t sequence) const;
  void leave_scratch(uint64_t sequence, bool used);

  // How many of MPI's own collectives this rank has started on `messages`.
  uint64_t native_started() const { return native_started_; }
  void note_native_start() { ++native_started_; }

 private:
  std::vector<int> ranks_;
  HostLayout layout_;
  MpiComm messages_;
  MpiComm guards_;
  MpiComm host_comm_;
  int64_t chunk_bytes_;
  ControlWindow control_;
  SharedWindow scratch_;
  std::vector<std::weak_ptr<SharedWindow>> windows_;
  std::deque<uint64_t> scratch_queue_;
  std::optional<uint64_t> last_in_scratch_;
  uint64_t native_started_ = 0;
};

}  // namespace tutti
