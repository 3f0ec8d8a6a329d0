#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "runtime/rank_end.h"

namespace tutti {

// Asks actors to stop, and says how that ends the run. Thread-safe; the first end is kept.
class StopToken {
 public:
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  // True for the first call. `failure`: the exception that caused the abort, or null.
  bool abort(const RankEnd& end, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (aborted()) return false;
    end_ = end;
    failure_ = failure;
    aborted_.store(true);
    return true;
  }

  RankEnd end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }
  std::exception_ptr failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  RankEnd end_;
  std::exception_ptr failure_;
};

}  // namespace tutti
