#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "runtime/rank_end.h"

namespace tutti {

// Whether actors continue or were aborted, and how that ends them. Thread-safe; the first end stands.
class StopToken {
 public:
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  // Whether this was the first. `failure`: the error that is to blame, or null.
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
