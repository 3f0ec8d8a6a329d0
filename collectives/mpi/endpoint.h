#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/group.h"
#include "collectives/mpi/world.h"
#include "collectives/ordered_sum.h"

namespace tutti {

// Memory shared by the ranks of one host: a segment per rank, mapped by all. Segments are memfds, which
// vanish with their processes, are not limited by the size of /dev/shm, and can be unmapped by a rank alone
// (all ranks together would have to free an MPI window).
class SharedWindow {
 public:
  // A rank's segment, as its neighbours find it.
  struct Offer {
    int64_t bytes = 0;
    int32_t process = 0;
    int32_t file = -1;  // -1: no memory
  };

  // Takes this rank's segment, zeroed and backed by real memory. Then the ranks exchange offers, map, and
  // exchange the results, whose largest is settled: all the same on every rank, or the window has no use.
  explicit SharedWindow(int64_t bytes);
  // The three in one. Collective over `host`; blocks.
  SharedWindow(MPI_Comm host, int64_t bytes);
  const Offer& offer() const { return offer_; }
  // The segments of this host's ranks, of which this is number `local`. Returns errno; 0: all are mapped.
  int map(const std::vector<Offer>& offers, int local);
  // After all ranks have mapped. Throws OperatingError if `failure`, the largest errno, is not 0.
  void settle(int failure);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;

  std::byte* segment(int local) const { return segments_[local].data; }
  std::byte* own() const { return segments_[local_].data; }
  bool owns(const void* data, int64_t bytes) const;  // true if the data is in this rank's segment
  int64_t offset(const void* data) const { return static_cast<const std::byte*>(data) - own(); }

 private:
  struct Segment {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  void unmap();
  void close_own();

  int64_t asked_ = 0;  // bytes
  Offer offer_;
  int failure_ = 0;  // errno
  int local_ = 0;
  std::vector<Segment> segments_;
};

// A number that one rank writes and its neighbours read, with release and acquire order.
class SharedCount {
 public:
  void set(uint64_t value) { std::atomic_ref(value_).store(value, std::memory_order_release); }
  uint64_t get() const { return std::atomic_ref(value_).load(std::memory_order_acquire); }

 private:
  alignas(64) mutable uint64_t value_;
};

// A rank's state in one collective. Only this rank writes the slot, and sets `posted` last.
struct ControlSlot {
  static constexpr int64_t kInlineBytes = 4096;
  static constexpr uint64_t kNoWindow = UINT64_MAX;

  SharedCount posted;   // sequence + 1 once header, window and offset are valid
  SharedCount left;     // sequence + 1 once this rank no longer reads its neighbours' memory
  SharedCount filled;   // pieces that are ready in this rank's scratch
  SharedCount settled;  // pieces that this rank has finished computing
  SharedCount drained;  // pieces that this rank has copied out of scratch
  bool finite;          // of the sums of this rank; valid once all its pieces are settled
  CollectiveHeader header;
  uint64_t window;  // number of the group's window with the data, or kNoWindow
  uint64_t offset;
  bool in_place;                             // the data is a whole, in which the rank's part has its places
  alignas(64) std::byte data[kInlineBytes];  // the data, if small
};

// The control slots of one host: kSlots per rank, collective s in slot s % kSlots. So at most kSlots
// collectives are in progress; further collectives wait in the posting rank.
class ControlWindow {
 public:
  static constexpr int kSlots = 64;

  explicit ControlWindow(MPI_Comm host) : memory_(host, sizeof(ControlSlot) * kSlots) {}

  ControlSlot& slot(int local, uint64_t sequence) const {
    return reinterpret_cast<ControlSlot*>(memory_.segment(local))[sequence % kSlots];
  }

 private:
  SharedWindow memory_;
};

// Maps a group's ranks to hosts. The ranks of a host need not be contiguous: then the host has more subtrees,
// and the sums have the same bits.
class HostLayout {
 public:
  // `host_of`: a number per rank of the group, equal for ranks that share memory.
  HostLayout(std::vector<int> host_of, int rank);
  // Of a group of `ranks` of the world, with this rank.
  static HostLayout of(const MpiWorld& world, const std::vector<int>& ranks);

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

  // `ranks`: global numbers, ascending. Collective over the ranks; blocks, so they have met before.
  MpiEndpoint(const MpiWorld& world, std::vector<int> ranks, HostLayout layout);

  const HostLayout& layout() const { return layout_; }
  int world_rank(int rank) const { return ranks_[rank]; }
  const MpiComm& comm() const { return messages_; }
  MPI_Comm messages() const { return messages_.get(); }
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
  // at its construction, and leaves when finished or when scratch is no longer needed.
  void queue_for_scratch(uint64_t sequence) { scratch_queue_.push_back(sequence); }
  bool may_use_scratch(uint64_t sequence) const;
  void release_scratch(uint64_t sequence, bool used);

 private:
  std::vector<int> ranks_;
  HostLayout layout_;
  MpiComm messages_;
  MpiComm host_comm_;
  int64_t chunk_bytes_;
  ControlWindow control_;
  SharedWindow scratch_;
  std::vector<std::weak_ptr<SharedWindow>> windows_;
  std::deque<uint64_t> scratch_queue_;
  std::optional<uint64_t> last_in_scratch_;
};

}  // namespace tutti
