#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

namespace tutti {

// Asks actors to stop, and says why. Thread-safe; the first reason is kept.
class StopToken {
 public:
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  // True for the first call. `failure`: the exception that caused the abort, or null.
  bool abort(const std::string& reason, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (aborted()) return false;
    reason_ = reason;
    failure_ = failure;
    aborted_.store(true);
    return true;
  }

  std::string reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  std::exception_ptr failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  std::string reason_;
  std::exception_ptr failure_;
};

}  // namespace tutti
