#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/mpi/control_window.h"
#include "collectives/mpi/host_layout.h"
#include "collectives/mpi/shared_window.h"
#include "collectives/mpi/world.h"

namespace tutti {

// A rank's seat in a group: what its operations work with.
class MpiSeat {
 public:
  // How many pieces of a large collective may be between two ranks at once.
  static constexpr int kBuffers = 4;

  // Collective over `ranks` (ascending, of the world).
  MpiSeat(const MpiWorld& world, std::vector<int> ranks);

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
