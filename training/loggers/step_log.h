#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "training/loggers/logger_destination.h"
#include "training/time/timestamp.h"

namespace tutti {

// Gathers what is logged at one step: for the Reporter metrics alone, one logged twice with its last value;
// for destinations every record, in order.
class StepLog final : public Logger {
 public:
  struct Readers {
    bool reporter = false;
    bool destinations = false;
  };

  // `now` must outlive this.
  StepLog(Readers readers, const Timestamp& now) : readers_(readers), now_(now) {}

  void log_hyperparameters(const LoggedHyperparameters& all) override { keep(all); }
  void log_metrics(const LoggedMetrics& metrics) override;
  void log_traces(const LoggedTraces& traces) override;
  void log_text(const LoggedText& text) override { keep(text); }
  void log_table(const LoggedTable& table) override { keep(table); }
  void log_images(const LoggedImages& images) override {
    if (readers_.destinations) keep(images);  // they are large
  }

  // What the Reporter knows already, by other names.
  void log_to_destinations(const LoggedMetrics& metrics) { keep(metrics); }
  bool has_destinations() const override { return readers_.destinations; }

  // What is logged from here on belongs to `step`.
  void begin_step(int64_t step) { step_ = step; }
  // So does what was logged while the run was prepared.
  void begin_run(int64_t step);
  void end_step() { keep(StepEnded()); }

  // An attempt at the step begins; it has come to something; or what it told destinations is forgotten.
  void begin_attempt() { attempt_ = entries_.size(); }
  void keep_attempt() { attempt_.reset(); }
  void void_attempt() {
    if (attempt_) entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*attempt_), entries_.end());
  }

  LoggedMetrics take();
  std::vector<LogEntry> take_entries() {
    attempt_.reset();
    return std::exchange(entries_, {});
  }

 private:
  void keep(decltype(LogEntry::what) what);
  void keep_for_reporter(const std::string& name, double value);

  Readers readers_;
  const Timestamp& now_;
  int64_t step_ = 1;
  LoggedMetrics metrics_;
  std::unordered_map<std::string, std::size_t> places_;  // in metrics_
  std::vector<LogEntry> entries_;
  std::optional<std::size_t> attempt_;  // entries before it
};

}  // namespace tutti
