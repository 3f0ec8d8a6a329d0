#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/terminal_output.h"
#include "training/loggers/data_wait.h"
#include "training/loggers/logger_destination.h"
#include "training/loggers/run_result.h"

namespace tutti {

// Shows a run on standard output. First the model, the device, the run folder and the checkpoint. Then
// progress: on a terminal one changing line with as many fields as fit, else plain lines; evaluations and
// tables have lines of their own. At the end a table of results and paths. Epochs and the steps of an epoch
// count from 1. Does not wait for readers of the output. Also writes result.json.
class Progress final : public LoggerDestination {
 public:
  // Facts that LogStart lacks.
  struct Facts {
    std::string model;    // its kind
    std::string device;   // "cpu"
    int threads = 1;      // of each rank
    int num_workers = 0;  // that read rank 0's batches
    int cores = 1;        // that rank 0 may use
    int hosts = 1;
    uint64_t seed = 0;
  };
  struct Options {
    std::FILE* out = stdout;       // null: shows nothing
    bool lines = true;             // false: only the table at the end
    bool json = false;             // only RunResult::json at the end
    bool tables = true;            // of callbacks; false: a logger prints them
    int64_t show_every_steps = 0;  // for plain lines; 0 = by time
    Facts facts = {};
    std::function<std::string()> newest_checkpoint = nullptr;  // the newest good one, or ""; null: none
    Disk* disk = nullptr;                                      // for result.json; null: not written
    Warn warn;
  };

  Progress(Options options, const Clock& clock);

  std::string name() const override { return "progress"; }
  bool numbers_only() const override { return true; }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(1); }
  Nanoseconds report_interval() const override {
    return options_.show_every_steps > 0 ? Nanoseconds(0) : std::chrono::milliseconds(50);
  }

  void open(const LogStart& start) override;
  void log_step(const StepReport& report, const LogTime& time) override;
  void log_evaluation(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  void log_trainer_metrics(const LoggedMetrics&, const LogTime&) override {}
  void log_training_end(const TrainingEnded& ended, const LogTime& time) override;
  void log_closing_text(const std::string& text) override { closing_text_ = text; }
  void flush(bool) override { out_.flush(); }
  bool busy() const override { return out_.busy(); }
  bool finish(bool late) override;

 private:
  void show();
  void show_opening();
  bool should_show() const;
  std::string place() const;  // of the last step: "epoch 3/20  step 12/32"
  std::vector<std::string> place_fields() const;
  std::vector<std::string> fields() const;  // of a line, the most important first
  std::string line() const;
  std::string line_within(std::size_t columns) const;
  double left_s() const;
  void show_result();
  void write_result(const std::string& json);
  double samples_per_s() const;

  Options options_;
  const Clock& clock_;
  TerminalOutput out_;
  bool colors_;
  RunResult result_;
  int64_t last_step_ = 0;
  Timestamp at_;  // before the last step
  std::string closing_text_;
  DataWait data_wait_;  // in the steps reported since a line was shown
  TimePoint opened_, first_step_, shown_;
  int64_t shown_step_ = -1;
  double first_samples_ = 0, samples_ = 0;  // samples of the run, after the first and the last step
  double first_progress_ = 0;               // after the first step
  bool finishing_ = false;
};

}  // namespace tutti
