#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "runtime/actor/scheduler.h"

namespace tutti {

// Keeps SIGTERM and SIGINT for a ProcessWatch; where SIGPIPE or SIGXFSZ would end the process, the write
// fails instead. To be called before any thread starts, Open MPI's among them: one that does not hold them
// ends the process.
void hold_stop_signals();

// What a process does about the world while its actors run: at SIGTERM and SIGINT it calls `stop`
// on a thread of its own (a second SIGINT ends the run at once), and a run that was aborted but whose threads
// do not end (stuck in a kernel, in MPI) is ended by force after kGrace, once `last_words` are said: these
// may be stuck too, and get kLastWords. A process that goes on for kStopGrace after a SIGTERM says them too:
// mpirun sends one to all when one has died, and kills them a second or two later.
class ProcessWatch {
 public:
  static constexpr Nanoseconds kGrace = std::chrono::seconds(3);
  static constexpr Nanoseconds kLastWords = std::chrono::milliseconds(500);
  static constexpr Nanoseconds kStopGrace = std::chrono::milliseconds(700);

  ProcessWatch(Scheduler& scheduler, std::function<void()> stop, int rank,
               std::function<void()> last_words = {});
  ~ProcessWatch();

 private:
  void watch();
  void signalled(int signal);
  void speak_in_time(TimePoint now);
  [[noreturn]] void end_by_force();

  Scheduler& scheduler_;
  std::function<void()> stop_;
  int rank_;
  std::function<void()> last_words_;
  int interrupts_ = 0;
  TimePoint stop_asked_at_ = kNever;  // by SIGTERM
  std::thread speaking_;              // last words before the end
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace tutti
