#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "collectives/group.h"
#include "collectives/mpi/shared_window.h"

namespace tutti {

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
