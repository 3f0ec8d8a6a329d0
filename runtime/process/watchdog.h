#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/clock.h"

namespace tutti {

// Does at the end of a process what may never return, such as writing to a dead disk: whether it was done
// within `limit`. Else its thread goes on, so `work` refers to nothing that may go before the process.
bool run_with_timeout(Nanoseconds limit, std::function<void()> work);

// Ends the process with an error when what its owner is about to do takes too long: for calls that can
// neither be interrupted nor given a time limit, such as MPI_Init, which waits for every rank.
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
