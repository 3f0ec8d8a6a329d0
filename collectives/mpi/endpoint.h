#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/mpi/shared_window.h"
#include "collectives/mpi/world.h"
#include "collectives/ordered_sum.h"

namespace tutti {

// Maps a group's ranks to hosts. The ranks of a host need not be contiguous: then the host has more subtrees,
// and the sums have the same bits.
class HostLayout {
 public:
  // `host_of`: a number per rank of the group, equal for ranks that share memory.
  HostLayout(std::vector<int> host_of, int rank);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(hosts_.size()); }
  int host() const { return host_of_[rank_]; }
  int host_of(int rank) const { return host_of_[rank]; }
  bool is_local(int rank) const { return host_of_[rank] == host(); }

  // The ranks of a host, ascending; the local number of a rank is its index in this list.
  const std::vector<int>& ranks_of(int host) const { return hosts_[host]; }
  const std::vector<int>& neighbours() const { return hosts_[host()]; }
  int local_of(int rank) const { return local_of_[rank]; }

  // The rank on `host` that sends the host's part of rank `owner`'s sum and receives the result: the owner
  // on its own host, else the rank with the owner's local number, so that work is spread evenly.
  int delegate(int host, int owner) const;

  // The subtrees of the group's ordered sum that `host` can compute alone.
  const std::vector<RankRange>& subtrees(int host) const { return subtrees_[host]; }

 private:
  int rank_;
  std::vector<int> host_of_;  // renumbered by lowest rank
  std::vector<int> local_of_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::vector<RankRange>> subtrees_;
};

// A rank's resources in a group, which its operations use.
class MpiEndpoint {
 public:
  // Pieces of a large collective that may be in transit between two ranks at once.
  static constexpr int kBuffers = 4;

  // Collective over `ranks` (global numbers, ascending).
  MpiEndpoint(const MpiWorld& world, std::vector<int> ranks);

  const HostLayout& layout() const { return layout_; }
  int world_rank(int rank) const { return ranks_[rank]; }
  const MpiComm& comm() const { return messages_; }
  MPI_Comm messages() const { return messages_.get(); }
  MPI_Comm guards() const { return guards_.get(); }
  MPI_Comm host_comm() const { return host_comm_.get(); }

  // The control slots of this host's ranks.
  int locals() const { return static_cast<int>(layout_.neighbours().size()); }
  int local() const { return layout_.local_of(layout_.rank()); }
  ControlSlot& slot(int local, uint64_t sequence) const { return control_.slot(local, sequence); }
  ControlSlot& own_slot(uint64_t sequence) const { return control_.slot(local(), sequence); }

  // Large collectives are cut into pieces of size() chunks of at most chunk_bytes() each.
  int64_t chunk_bytes() const { return chunk_bytes_; }
  int64_t piece_bytes() const { return chunk_bytes_ * layout_.size(); }
  std::byte* scratch(int local, int64_t piece) const;

  // Windows made by MpiGroup::allocate, by number; null if all tensors of the window are destroyed.
  void add_window(const std::shared_ptr<SharedWindow>& window) { windows_.push_back(window); }
  std::shared_ptr<SharedWindow> window(uint64_t number) const { return windows_[number].lock(); }
  std::optional<uint64_t> window_of(const void* data, int64_t bytes) const;

  // One collective at a time uses the scratch memory, in the order posted. A large collective joins the queue
  // when it is made, and leaves when it has finished or does not need scratch.
  void queue_for_scratch(uint64_t sequence) { scratch_queue_.push_back(sequence); }
  bool may_use_scratch(uint64_t sequence) const;
  void release_scratch(uint64_t sequence, bool used);

  // Number of MPI collectives that this rank has started on `messages`.
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
