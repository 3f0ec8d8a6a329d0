#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// Memory shared by the ranks of one host: a segment per rank, mapped by all. Segments are memfds: they vanish
// with their processes, the size of /dev/shm does not limit them, and a rank can unmap them alone (all ranks
// together would have to free an MPI window).
class SharedWindow {
 public:
  // `bytes`: size of this rank's segment, zeroed and backed by real memory. Collective over `host`; blocks.
  // Throws OperatingError on every rank if one rank fails.
  SharedWindow(MPI_Comm host, int64_t bytes);
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
  struct Offer;
  void unmap();

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
// collectives are in progress; more wait in the rank that posts them.
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

}  // namespace tutti
