#pragma once

#include <cstdint>

namespace tutti {

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
  // that holds the baton. A slot, not a global rank number: a process of one rank may leave it at 0.
  static void set_owner(int rank);

  static int64_t used_bytes(int rank);
  static int64_t peak_bytes(int rank);  // since the last reset
  static void reset_peak(int rank);
};

}  // namespace tutti
