#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "training/loggers/logger_destination.h"
#include "training/time/timestamp.h"

namespace tutti {

// Gathers what is logged at one step, in order, for those who read it.
class StepLog final : public Logger {
 public:
  struct Readers {
    bool numbers = false;
    bool all = false;  // what is no number too
  };

  // `now` must outlive this.
  StepLog(Readers readers, const Timestamp& now) : readers_(readers), now_(now) {}

  void log_hyperparameters(const LoggedHyperparameters& all) override { keep(readers_.all, all); }
  void log_metrics(const LoggedMetrics& metrics) override { keep(readers_.numbers, metrics); }
  void log_traces(const LoggedTraces& traces) override { keep(readers_.numbers, traces); }
  void log_text(const LoggedText& text) override { keep(readers_.all, text); }
  void log_table(const LoggedTable& table) override { keep(readers_.all, table); }
  void log_images(const LoggedImages& images) override {
    if (readers_.all) keep(true, images);  // they are large
  }
  bool has_destinations() const override { return readers_.all; }

  // What the Trainer logs itself; a step, with the time before its batch was counted.
  bool logs_steps() const { return readers_.numbers; }
  void log_step(StepReport report, const Timestamp& before) {
    entries_.push_back({{step_, before}, std::move(report)});
  }
  void log_evaluation(const LoggedMetrics& metrics) { keep(readers_.numbers, EvaluationLogged{metrics}); }
  void log_trainer_metrics(const LoggedMetrics& metrics) { keep(readers_.all, TrainerMetrics{metrics}); }
  void log_closing_text(const std::string& text) { keep(readers_.numbers, ClosingText{text}); }

  // What is logged from here on belongs to `step`.
  void begin_step(int64_t step) { step_ = step; }
  // So does what was logged while the run was prepared.
  void begin_run(int64_t step) {
    step_ = step;
    for (auto& entry : entries_) entry.time = {step, now_};
  }
  void evaluation_due() { keep(readers_.numbers, EvaluationDue()); }
  void end_step() { keep(readers_.numbers, StepEnded()); }

  // An attempt at the step begins; it has come to something; or what it logged is forgotten.
  void begin_attempt() { attempt_ = entries_.size(); }
  void keep_attempt() { attempt_.reset(); }
  void abort_attempt() {
    if (attempt_) entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*attempt_), entries_.end());
  }

  std::vector<LogEntry> take_entries() {
    attempt_.reset();
    return std::exchange(entries_, {});
  }

 private:
  void keep(bool is_read, decltype(LogEntry::what) what) {
    if (is_read) entries_.push_back({{step_, now_}, std::move(what)});
  }

  Readers readers_;
  const Timestamp& now_;
  int64_t step_ = 1;
  std::vector<LogEntry> entries_;
  std::optional<std::size_t> attempt_;  // entries before it
};

}  // namespace tutti
