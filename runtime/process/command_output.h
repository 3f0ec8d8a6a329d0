#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tutti {

// A command line of the user that sh runs, and whose standard output this process reads from a pipe.
class CommandOutput {
 public:
  // Throws OperatingError if it cannot be started.
  explicit CommandOutput(const std::string& command);
  // Kills the command's process group, if running, and waits for its end.
  ~CommandOutput();
  CommandOutput(const CommandOutput&) = delete;
  CommandOutput& operator=(const CommandOutput&) = delete;

  // Waits for bytes; returns how many were read, 0 at the end of the output. Throws OperatingError if a run
  // that has not begun is asked to stop (runtime/process/process_watch.h).
  std::size_t read(std::span<char> bytes);

  // After the end of the output: waits for the command's end. "" if its exit code is 0; else the exit code,
  // and the new file that has the end of its standard error, in which secrets may be: "exit code 1; what it
  // printed last is in /tmp/tutti-command-RHOYpq".
  std::string failure();

 private:
  void read_errors();
  bool wait(int options);

  pid_t pid_ = 0;
  int output_ = -1, errors_ = -1;
  std::string last_errors_;  // the end of standard error
  std::optional<int> status_;
};

}  // namespace tutti
