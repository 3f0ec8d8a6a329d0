#include "training/loggers/command_logger.h"

#include <algorithm>

#include "io/json/json_line.h"
#include "recipe/command_keys.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxUnwritten = 1 << 20;  // bytes

}  // namespace

CommandLogger::CommandLogger(std::string command, bool rank_zero_only, StartChild start, Warn warn)
    : command_(std::move(command)),
      rank_zero_only_(rank_zero_only),
      start_(std::move(start)),
      warn_(std::move(warn)) {}

void CommandLogger::open(const LogStart& start) {
  if (!start_) return;
  output_path_ = start.run_dir + "/log/command-rank-" + std::to_string(start.rank) + ".log";
  child_ = start_(command_, output_path_);
  line(start_line(start));
}

void CommandLogger::line(const std::string& json) {
  if (!start_) return;
  if (child_ && unwritten_.size() + json.size() < kMaxUnwritten) {
    unwritten_ += json + "\n";
    return;
  }
  ++lost_;
  if (!std::exchange(loss_reported_, true))
    report(child_ ? "does not keep up; lines are lost" : "is gone; lines are lost");
}

void CommandLogger::step_end(const LogTime& time) {
  line(json_line({{"type", std::string("step_end")},
                  {"step", time.step},
                  {"batch", time.at.batch},
                  {"epoch", time.epoch()}}));
}

void CommandLogger::flush(bool) {
  while (busy()) {
    const int64_t written = child_->write(unwritten_);
    if (written < 0) lose_child();
    if (written <= 0) return;
    unwritten_.erase(0, static_cast<std::size_t>(written));
  }
}

void CommandLogger::lose_child() {
  const std::string outcome = child_->outcome();
  child_.reset();
  lose_unwritten();
  if (!finishing_)
    report("reads no more" + (outcome.empty() ? "" : " (" + outcome + ")") + "; what it printed is in " +
           output_path_);
}

// A partly written line counts as lost.
void CommandLogger::lose_unwritten() {
  if (unwritten_.empty()) return;
  lost_ += std::ranges::count(unwritten_, '\n') - (end_queued_ ? 1 : 0);
  unwritten_.clear();
}

bool CommandLogger::finish(bool late) {
  if (!finishing_ && child_) {
    unwritten_ += json_line({{"type", std::string("end")}}) + "\n";
    end_queued_ = true;
  }
  finishing_ = true;
  flush(false);
  if (child_ && !busy()) child_->end_input();
  if (child_ && !child_->ended() && !late) return false;
  if (child_ && !child_->ended()) {
    report("does not end, and is killed");
    child_->kill();
  } else if (child_ && !child_->succeeded()) {
    report("ended with " + child_->outcome() + "; what it printed is in " + output_path_);
  }
  child_.reset();
  lose_unwritten();
  if (lost_ > 0) report("lost " + std::to_string(lost_) + " lines");
  return true;
}

void CommandLogger::report(const std::string& what) {
  warn_("logger '" + command_name(command_) + "' " + what);
}

}  // namespace tutti
