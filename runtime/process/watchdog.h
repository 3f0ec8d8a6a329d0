#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/clock.h"

namespace tutti {

// Runs `work`, which may never return (such as a write to a dead disk), on another thread. True if it
// finished within `limit`. Else the thread continues: objects that `work` uses must outlive the process.
bool run_with_timeout(Nanoseconds limit, std::function<void()> work);

// Ends the process with an error if it is not destroyed within `limit`. For calls that cannot be interrupted,
// such as MPI_Init, which waits for every rank.
class StartWatchdog {
 public:
  // `doing`: "connecting to the other ranks (MPI_Init)".
  StartWatchdog(int rank, std::string doing, Nanoseconds limit);
  ~StartWatchdog();
  StartWatchdog(const StartWatchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace tutti
