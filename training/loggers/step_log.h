#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "recipe/time/timestamp.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// Collects the records of a step in order.
class StepLog final : public Logger {
 public:
  struct Readers {
    bool numbers = false;  // and tables
    bool all = false;      // also hyperparameters, texts and images
  };

  // `now` must outlive this object.
  StepLog(Readers readers, const Timestamp& now) : readers_(readers), now_(now) {}

  void log_hyperparameters(const LoggedHyperparameters& all) override { add(readers_.all, all); }
  void log_metrics(const LoggedMetrics& metrics) override { add(readers_.numbers, metrics); }
  void log_traces(const LoggedTraces& traces) override { add(readers_.numbers, traces); }
  void log_text(const LoggedText& text) override { add(readers_.all, text); }
  void log_table(const LoggedTable& table) override { add(readers_.numbers, table); }
  void log_images(const LoggedImages& images) override {
    if (readers_.all) add(true, images);  // avoids a copy: images are large
  }
  bool has_destinations() const override { return readers_.all; }

  // Records of the Trainer. `before`: the time before the batch was counted.
  bool logs_steps() const { return readers_.numbers; }
  void log_step(StepReport report, const Timestamp& before) {
    entries_.push_back({{step_, before}, std::move(report)});
  }
  void log_evaluation(const LoggedMetrics& metrics) { add(readers_.numbers, EvaluationLogged{metrics}); }
  void log_trainer_metrics(const LoggedMetrics& metrics) { add(readers_.all, TrainerMetrics{metrics}); }
  void log_training_end(const TrainingEnded& ended) { add(readers_.numbers, ended); }
  void log_closing_text(const std::string& text) { add(readers_.numbers, ClosingText{text}); }

  // Following records belong to `step`.
  void begin_step(int64_t step) { step_ = step; }
  // Following records, and records of the preparation, belong to `step`. A run that continues logged the
  // metrics of its preparation when it first began.
  void begin_run(int64_t step, bool continues) {
    step_ = step;
    if (continues)
      std::erase_if(entries_,
                    [](const auto& entry) { return std::holds_alternative<LoggedMetrics>(entry.what); });
    for (auto& entry : entries_) entry.time = {step, now_};
  }
  void evaluation_due() { add(readers_.numbers, EvaluationDue()); }
  void end_step() { add(readers_.numbers, StepEnded()); }

  // An attempt at the step begins, succeeds, or is aborted, which drops its records.
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
  void add(bool is_read, decltype(LogEntry::what) what) {
    if (is_read) entries_.push_back({{step_, now_}, std::move(what)});
  }

  Readers readers_;
  const Timestamp& now_;
  int64_t step_ = 1;
  std::vector<LogEntry> entries_;
  std::optional<std::size_t> attempt_;  // number of entries before the attempt
};

}  // namespace tutti
