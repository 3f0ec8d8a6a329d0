#pragma once

#include <string>

#include "training/loggers/logger_destination.h"

namespace tutti {

// Rank 0's waits for data, and advice for reading its batches faster.
class DataWait {
 public:
  void add(const StepReport& step);

  // "38% waiting for data (num_workers = 3 would save 30%, a faster disk 5%)". "" if the wait is not felt. An
  // estimate: reading never pauses, on `threads` threads; more threads than `cores` bring no gain.
  std::string text(int threads, int cores) const;

 private:
  // The wait for batches that are read in `read_ms` by `threads`, as a part of the time.
  double wait(double read_ms, int threads) const;

  double step_ms_ = 0, wait_ms_ = 0, read_ms_ = 0, disk_ms_ = 0;
};

}  // namespace tutti
