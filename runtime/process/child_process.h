#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tutti {

// A program started by this process. No call blocks or throws.
class ChildProcess {
 public:
  virtual ~ChildProcess() = default;  // closes the input; does not end the program

  // Writes to the program's standard input. Returns the bytes written, 0 if the pipe is full, -1 if the pipe
  // is closed.
  virtual int64_t write(std::span<const char> bytes) = 0;
  virtual void end_input() = 0;
  virtual bool ended() = 0;
  virtual bool succeeded() = 0;       // ended with exit code 0
  virtual std::string outcome() = 0;  // "exit code 1" or "signal 9"; "" while the program runs
  virtual void kill() = 0;            // kills the process group
};

// Starts a program; throws OperatingError. Null in simulations and replays, which start no programs.
using StartChild =
    std::function<std::unique_ptr<ChildProcess>(const std::string& command, const std::string& output_path)>;

// Runs `command` with /bin/sh in a new process group, so that Ctrl-C does not reach the program. Appends its
// output to the file at `output_path`.
std::unique_ptr<ChildProcess> start_child(const std::string& command, const std::string& output_path);

}  // namespace tutti
