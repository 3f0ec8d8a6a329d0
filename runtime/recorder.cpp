#include "runtime/recorder.h"

#include <algorithm>
#include <mutex>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kLooksForLock = 10'000;

}  // namespace

struct RingRecorder::Ring {
  explicit Ring(int capacity) : happenings(capacity) {}
  std::mutex mutex;
  std::vector<Happening> happenings;
  uint64_t count = 0;
};

RingRecorder::RingRecorder(int capacity) : ring_(new Ring(capacity)) {
  TUTTI_ASSERT(capacity > 0, "a recorder keeps at least one happening");
}

RingRecorder::~RingRecorder() { delete ring_; }

void RingRecorder::record(const Happening& happening) {
  const std::lock_guard lock(ring_->mutex);
  ring_->happenings[ring_->count++ % ring_->happenings.size()] = happening;
}

std::vector<Happening> RingRecorder::last(int count) const {
  const std::lock_guard lock(ring_->mutex);
  const uint64_t kept = std::min<uint64_t>(ring_->count, ring_->happenings.size());
  const uint64_t wanted = std::min<uint64_t>(kept, std::max(count, 0));
  std::vector<Happening> out;
  for (uint64_t i = ring_->count - wanted; i < ring_->count; ++i) {
    out.push_back(ring_->happenings[i % ring_->happenings.size()]);
  }
  return out;
}

// Where the lock does not come, whoever holds it may be half through the newest one: that is left out.
std::size_t RingRecorder::peek(std::span<Happening> out) const {
  bool locked = false;
  for (int look = 0; look < kLooksForLock && !locked; ++look) locked = ring_->mutex.try_lock();
  const uint64_t size = ring_->happenings.size();
  const uint64_t end = ring_->count - (!locked && ring_->count > 0 ? 1 : 0);
  const uint64_t wanted = std::min<uint64_t>({end, size - 1, out.size()});
  for (uint64_t i = 0; i < wanted; ++i) out[i] = ring_->happenings[(end - wanted + i) % size];
  if (locked) ring_->mutex.unlock();
  return wanted;
}

}  // namespace tutti
