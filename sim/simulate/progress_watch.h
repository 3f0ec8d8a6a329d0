#pragma once

#include <algorithm>

#include "runtime/clock.h"

namespace tutti {

// Measures how long an attempt stands still: the time until the next committed step or the end, from the last
// step or, if later, the end of the last effect of a fault.
class ProgressWatch {
 public:
  // A stall is a standstill of more than `most`.
  explicit ProgressWatch(Nanoseconds most) : most_(most) {}

  // A fault has an effect until then; kNever: as long as the attempt lasts.
  void disturb(TimePoint until) { since_ = std::max(since_, until); }
  // A step was committed, or the attempt has ended.
  void progress(TimePoint now) {
    longest_ = std::max(longest_, now - std::min(since_, now));
    since_ = std::max(since_, now);
    reported_ = false;
  }
  // True if a stall has begun since the last call and the last step.
  bool stalls(TimePoint now) {
    if (reported_ || since_ >= now || now - since_ <= most_) return false;
    return reported_ = true;
  }
  TimePoint since() const { return since_; }
  Nanoseconds longest() const { return longest_; }

 private:
  Nanoseconds most_;
  TimePoint since_{};
  Nanoseconds longest_{0};
  bool reported_ = false;
};

}  // namespace tutti
