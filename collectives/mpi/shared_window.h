#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// Memory that the ranks of one host share: one segment each, mapped by all. Segments are anonymous (memfd),
// so nothing is left behind however a rank ends, /dev/shm's size does not bound them, and a rank drops its
// mapping when it likes (an MPI window would have to be freed by all together).
class SharedWindow {
 public:
  // `bytes` of this rank, zeroed and backed by real memory. Collective over `host`; blocks. Throws
  // OperatingError on every rank when one can't.
  SharedWindow(MPI_Comm host, int64_t bytes);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;

  std::byte* segment(int local) const { return segments_[local].data; }
  std::byte* own() const { return segments_[local_].data; }
  bool owns(const void* data, int64_t bytes) const;  // whether it lies in this rank's segment
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

// A number that one rank writes and its neighbours read: what was written before a `set` is seen after a
// `get` of it.
class SharedCount {
 public:
  void set(uint64_t value) { std::atomic_ref(value_).store(value, std::memory_order_release); }
  uint64_t get() const { return std::atomic_ref(value_).load(std::memory_order_acquire); }

 private:
  alignas(64) mutable uint64_t value_;
};

// What a rank says about one collective. Only the rank itself writes it; it says so with `posted`, last.
struct ControlSlot {
  static constexpr int64_t kInlineBytes = 4096;
  static constexpr uint64_t kNoWindow = UINT64_MAX;

  SharedCount posted;   // sequence + 1 once the header and the place of the data can be read
  SharedCount left;     // sequence + 1 once this rank reads nothing more of its neighbours
  SharedCount filled;   // pieces that lie ready in this rank's scratch
  SharedCount settled;  // pieces of which this rank has written all it must
  SharedCount drained;  // pieces that this rank has taken out of scratch
  bool finite;          // so far as this rank has settled its sum; to be read once all of it is
  CollectiveHeader header;
  uint64_t window;  // which of the group's windows holds the data, or kNoWindow
  uint64_t offset;
  alignas(64) std::byte data[kInlineBytes];  // the data itself, when it is small
};

// The slots through which the ranks of one host run collectives: a ring of kSlots a rank, collective s in
// slot s % kSlots. So at most kSlots collectives are under way; a rank that posts more keeps them waiting by
// itself.
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
