#include "runtime/recorder.h"

#include <algorithm>
#include <iterator>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kLockAttempts = 10'000;

}  // namespace

const char* name(RecordedInput input) {
  static constexpr const char* kNames[] = {
      "checkpoint",         "whose checkpoint",  "seconds",     "evaluation seconds",
      "prediction seconds", "failed allocation", "disk",        "publish",
      "verification",       "failed place"};
  static_assert(std::size(kNames) == static_cast<int>(RecordedInput::kFailedPlace) + 1);
  return kNames[static_cast<int>(input)];
}

RingRecorder::RingRecorder(int capacity) : events_(capacity) {
  TUTTI_ASSERT(capacity > 0, "a recorder keeps at least one trace event");
}

void RingRecorder::record(const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  events_[count_++ % events_.size()] = event;
}

std::vector<TraceEvent> RingRecorder::last(int count) const {
  const std::lock_guard lock(mutex_);
  const uint64_t kept = std::min<uint64_t>(count_, events_.size());
  const uint64_t number = std::min<uint64_t>(kept, std::max(count, 0));
  std::vector<TraceEvent> out;
  for (uint64_t i = count_ - number; i < count_; ++i) {
    out.push_back(events_[i % events_.size()]);
  }
  return out;
}

// Without the lock, another thread may be writing the newest event: it is left out.
std::size_t RingRecorder::peek(std::span<TraceEvent> out) const {
  bool locked = false;
  for (int attempt = 0; attempt < kLockAttempts && !locked; ++attempt) locked = mutex_.try_lock();
  const uint64_t size = events_.size();
  const uint64_t end = count_ - (!locked && count_ > 0 ? 1 : 0);
  const uint64_t number = std::min<uint64_t>({end, size - 1, out.size()});
  for (uint64_t i = 0; i < number; ++i) out[i] = events_[(end - number + i) % size];
  if (locked) mutex_.unlock();
  return number;
}

}  // namespace tutti
