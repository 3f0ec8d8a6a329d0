#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace at {
class Tensor;
}

namespace tutti {

inline constexpr double kBytesPerMb = 1e6;

// Counts the bytes of CPU tensors, a rank at a time. Installed once per process as libtorch's CPU allocator;
// each block carries a 64-byte header with its size and owner, so that freeing it credits whoever took it, on
// any thread.
//
// Blocks of kCachedBytes and more are kept when they are freed and handed out again: the system would unmap
// them, and pay for fresh pages on every step.
class Meter {
 public:
  static constexpr int kMaxRanks = 1024;
  static constexpr int64_t kCachedBytes = int64_t{1} << 20;

  // Makes every CPU tensor from here on go through the meter. Idempotent.
  static void install();

  // The rank that blocks allocated from now on belong to: the process's rank, or under the simulator the one
  // that holds the run token. A slot, not a global rank number: a process of one rank may leave it at 0.
  static void set_owner(int rank);

  static int64_t used_bytes(int rank);
  static int64_t peak_bytes(int rank);  // since the last reset
  static void reset_peak(int rank);

  // What the rank may use while one of its MemoryScopes asks for more; 0 = there is no such limit.
  static void set_budget(int rank, int64_t bytes);
  static int64_t budget(int rank);

  // Whether a tensor's memory came from the meter. What did not (shared memory) may be charged by hand, and
  // taken off again by a negative number.
  static bool counts(const at::Tensor& tensor);
  static void charge(int rank, int64_t bytes);

  // What MemoryScopes of the rank took and is still held, and how many allocations they asked for.
  static int64_t scoped_bytes(int rank);
  static int64_t scoped_allocations(int rank);

  // Makes allocations of the rank's scopes fail: the first one from now has ordinal 1. Ascending. So a
  // failure that was once seen can be had again, and any can be tried.
  static void fail_at(int rank, const std::vector<int64_t>& ordinals);
  static int64_t failures_left(int rank);  // of these
};

// An allocation that could not be had.
struct FailedAllocation {
  int64_t asked_bytes = 0;
  int64_t used_bytes = 0;    // by the rank, just then
  int64_t budget_bytes = 0;  // 0 = it was the system that had no more
  int64_t ordinal = 0;       // within the scope, from 1; kNotSeen: it was thrown, and not by the meter

  static constexpr int64_t kNotSeen = -1;
};

// While it lives, this thread's allocations are held to the rank's budget: one that would exceed it throws
// c10::OutOfMemoryError. Other threads of the rank are never held back.
class MemoryScope {
 public:
  explicit MemoryScope(int rank);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // The last one within the scope.
  const std::optional<FailedAllocation>& shortage() const { return shortage_; }

  // For the allocator: throws where `bytes` more are too many / notes that they could not be had.
  void admit(int64_t bytes);
  void refuse(int64_t bytes, int64_t budget);

 private:
  int rank_;
  MemoryScope* outer_;
  int64_t first_ = 0;
  std::optional<FailedAllocation> shortage_;
};

// Work within a scope that is not the scope's: it is not held to the budget, nor counted.
class MemoryScopePause {
 public:
  MemoryScopePause();
  ~MemoryScopePause();
  MemoryScopePause(const MemoryScopePause&) = delete;
  MemoryScopePause& operator=(const MemoryScopePause&) = delete;

 private:
  MemoryScope* paused_;
};

}  // namespace tutti
