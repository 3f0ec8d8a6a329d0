#pragma once

#include <memory>
#include <string>

#include "runtime/process/child_process.h"
#include "training/loggers/json_lines.h"

namespace tutti {

// Passes everything on to a program of the user's, as JSON objects, one a line, on its standard input:
// docs/loggers.md. A program that does not read loses lines, one that ends loses the rest; both are told of.
class CommandLogger final : public JsonLines {
 public:
  using Warn = std::function<void(const std::string& what)>;

  // `start` may be null: no program is started, and what is logged goes nowhere.
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
  void tell(const std::string& what);

  std::string command_;
  bool rank_zero_only_;
  StartChild start_;
  Warn warn_;
  std::unique_ptr<ChildProcess> child_;
  std::string output_path_;
  std::string unwritten_;
  int64_t lost_ = 0;  // lines
  bool told_of_loss_ = false;
  bool finishing_ = false;
  bool told_end_ = false;  // the last of what is unwritten, if anything is, says that the run has ended
};

}  // namespace tutti
