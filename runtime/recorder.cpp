#include "runtime/recorder.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kLockAttempts = 10'000;

}  // namespace

const char* name(RecordedInput input) {
  static constexpr const char* kNames[] = {
      "checkpoint",         "whose checkpoint",  "seconds",      "evaluation seconds",
      "prediction seconds", "failed allocation", "disk",         "publish",
      "room for logs",      "logs asked",        "logs written", "mlperf result"};
  static_assert(std::size(kNames) == static_cast<int>(RecordedInput::kMlperfResult) + 1);
  return kNames[static_cast<int>(input)];
}

struct RingRecorder::Ring {
  explicit Ring(int capacity) : events(capacity) {}
  std::mutex mutex;
  std::vector<TraceEvent> events;
  uint64_t count = 0;
};

RingRecorder::RingRecorder(int capacity) : ring_(new Ring(capacity)) {
  TUTTI_ASSERT(capacity > 0, "a recorder keeps at least one trace event");
}

RingRecorder::~RingRecorder() { delete ring_; }

void RingRecorder::record(const TraceEvent& event) {
  const std::lock_guard lock(ring_->mutex);
  ring_->events[ring_->count++ % ring_->events.size()] = event;
}

std::vector<TraceEvent> RingRecorder::last(int count) const {
  const std::lock_guard lock(ring_->mutex);
  const uint64_t kept = std::min<uint64_t>(ring_->count, ring_->events.size());
  const uint64_t wanted = std::min<uint64_t>(kept, std::max(count, 0));
  std::vector<TraceEvent> out;
  for (uint64_t i = ring_->count - wanted; i < ring_->count; ++i) {
    out.push_back(ring_->events[i % ring_->events.size()]);
  }
  return out;
}

// Without the lock, another thread may be writing the newest event: it is left out.
std::size_t RingRecorder::peek(std::span<TraceEvent> out) const {
  bool locked = false;
  for (int attempt = 0; attempt < kLockAttempts && !locked; ++attempt) locked = ring_->mutex.try_lock();
  const uint64_t size = ring_->events.size();
  const uint64_t end = ring_->count - (!locked && ring_->count > 0 ? 1 : 0);
  const uint64_t wanted = std::min<uint64_t>({end, size - 1, out.size()});
  for (uint64_t i = 0; i < wanted; ++i) out[i] = ring_->events[(end - wanted + i) % size];
  if (locked) ring_->mutex.unlock();
  return wanted;
}

}  // namespace tutti
