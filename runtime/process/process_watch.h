#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/actor/scheduler.h"
#include "runtime/clock.h"

namespace tutti {

// Runs `work`, which may never return (such as a write to a dead disk), on another thread. True if it
// finished within `limit`. Else the thread continues: objects that `work` uses must outlive the process.
bool run_with_timeout(Nanoseconds limit, std::function<void()> work);

// Ends the process with an error unless destroyed within `limit`. For calls that cannot be interrupted, such
// as MPI_Init, which waits for every rank.
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

// Blocks the signals that stop a run, for a ProcessWatch: SIGTERM, SIGINT, and unless they are ignored
// (nohup) SIGHUP of a terminal that is closed, and SIGUSR1, SIGUSR2 and SIGXCPU, by which batch systems
// announce the end. Ignores SIGPIPE and SIGXFSZ, so that the write fails instead. Call before any thread
// starts, also Open MPI's: the signal mask is inherited.
void hold_stop_signals();

// True if a run that has not begun holds a stop signal back, or a ProcessWatch has received a stop signal.
// Thread-safe.
bool stop_asked();

// Throws OperatingError of kInterrupted if a run that has not begun holds a stop signal back: "stopped while
// " + `doing`. For long work before the first step; a begun run ends without this call.
void require_no_held_stop(const std::string& doing);

// Handles signals and hangs while the actors of a process run, on its own thread:
// - A signal that stops (hold_stop_signals): calls `stop`. A second SIGINT aborts the run.
// - The threads of an aborted run do not end within kGrace (stuck in a kernel, in MPI): calls `report`, for
//   kReportTimeout at most, then ends the process.
// - The process still runs kStopGrace after another signal than SIGINT: calls `report`. When a rank dies,
// mpirun sends SIGTERM
//   to all ranks and kills them a second or two later.
class ProcessWatch {
 public:
  static constexpr Nanoseconds kGrace = std::chrono::seconds(3);
  static constexpr Nanoseconds kReportTimeout = std::chrono::milliseconds(500);
  static constexpr Nanoseconds kStopGrace = std::chrono::milliseconds(700);

  struct Calls {
    std::function<void()> stop;
    std::function<void()> report = {};  // may be empty
  };
  ProcessWatch(Scheduler& scheduler, int rank, Calls calls);
  ~ProcessWatch();

 private:
  void watch();
  void handle_signal(int signal);
  void write_report_after_stop(TimePoint now);
  [[noreturn]] void end_by_force();

  Scheduler& scheduler_;
  int rank_;
  Calls calls_;
  int interrupts_ = 0;
  TimePoint stop_asked_at_ = kNever;  // by another signal than SIGINT
  std::thread reporting_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace tutti
