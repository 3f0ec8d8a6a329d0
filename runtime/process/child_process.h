#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tutti {

// A program that this process started and writes to. Nothing here blocks, nor throws.
class ChildProcess {
 public:
  virtual ~ChildProcess() = default;  // ends its input; one that still runs is left to itself

  // Puts bytes into its standard input: how many it took, 0 when it does not read just now, -1 when it reads
  // no more.
  virtual int64_t write(std::span<const char> bytes) = 0;
  virtual void end_input() = 0;
  virtual bool ended() = 0;           // it runs no more
  virtual bool succeeded() = 0;       // it ended with exit code 0
  virtual std::string outcome() = 0;  // how it ended: "exit code 1", "signal 9"; "" while it runs
  virtual void kill() = 0;            // it and what it started
};

// Starts a program; throws OperatingError. Null: nothing is started, as in a simulation or a replay.
using StartChild =
    std::function<std::unique_ptr<ChildProcess>(const std::string& command, const std::string& output_path)>;

// Runs `command` by /bin/sh in a process group of its own, so that Ctrl-C does not reach it; what it prints
// goes to the end of the file at `output_path`.
std::unique_ptr<ChildProcess> start_child(const std::string& command, const std::string& output_path);

}  // namespace tutti
