#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/clock.h"

namespace tutti {

// Programs that run at once and do not outlive this process: however the process ends, the system sends
// SIGTERM to the programs. While the pool exists, signals that stop a process (SIGINT, SIGTERM, SIGHUP) are
// held back for wait(). For processes with one thread.
class ChildPool {
 public:
  ChildPool();
  ~ChildPool();  // kills programs that still run
  ChildPool(const ChildPool&) = delete;
  ChildPool& operator=(const ChildPool&) = delete;

  // Starts a program in a process group of its own, without input; its output is appended to the file. `id`
  // is the caller's. Throws OperatingError.
  void start(int id, const std::vector<std::string>& words, const std::string& output_path);

  struct Ended {
    int id = 0;
    int status = 0;  // of waitpid
  };
  // A program that has ended; nothing after the timeout, or once a signal has asked to stop.
  std::optional<Ended> wait(Nanoseconds timeout);

  bool stop_asked() const { return stop_asked_; }
  void signal_all(int signal) const;
  std::size_t running() const { return running_.size(); }

 private:
  std::optional<Ended> reap();

  std::map<pid_t, int> running_;  // their ids
  bool stop_asked_ = false;
  sigset_t watched_{}, before_{};
};

}  // namespace tutti
