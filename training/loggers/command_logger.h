#pragma once

#include <memory>
#include <string>

#include "runtime/log.h"
#include "runtime/process/child_process.h"
#include "training/loggers/json_lines.h"

namespace tutti {

// Writes all records as JSON lines to the standard input of a user's program: docs/loggers.md. Lines are lost
// if the program does not read, or ends early; both cases are reported.
class CommandLogger final : public JsonLines {
 public:
  // `start` may be null: then no program is started.
  CommandLogger(std::string command, bool rank_zero_only, StartChild start, Warn warn);

  std::string name() const override { return "CommandLogger"; }
  bool rank_zero_only() const override { return rank_zero_only_; }
  void open(const LogStart& start) override;
  void step_end(const LogTime& time) override;
  void flush(bool sync) override;
  bool busy() const override { return child_ && !unwritten_.empty(); }
  bool finish(bool late) override;

 protected:
  void line(const std::string& json) override;

 private:
  void lose_child();
  void lose_unwritten();
  void report(const std::string& what);

  std::string command_;
  bool rank_zero_only_;
  StartChild start_;
  Warn warn_;
  std::unique_ptr<ChildProcess> child_;
  std::string output_path_;
  std::string unwritten_;
  int64_t lost_ = 0;  // lines
  bool loss_reported_ = false;
  bool finishing_ = false;
  bool end_queued_ = false;  // unwritten_, unless empty, ends with the line that says the run has ended
};

}  // namespace tutti
