#include "runtime/recorder.h"

#include <algorithm>
#include <mutex>

#include "runtime/error.h"

namespace tutti {

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

}  // namespace tutti
