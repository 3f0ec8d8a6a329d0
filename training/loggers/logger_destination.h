#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "recipe/time/timestamp.h"
#include "runtime/clock.h"
#include "training/engine/callback.h"
#include "training/engine/logger.h"

namespace tutti {

// Time of a record.
struct LogTime {
  // The step of the record, from 1. A run resumed from a checkpoint of step N logs records of later steps
  // again.
  int64_t step = 0;
  // at.batch is Composer's step: the number of finished batches.
  Timestamp at;

  // The epoch of the step, from 1. After the last batch of an epoch `at` may be in the next epoch.
  int64_t epoch() const {
    const bool ended = at.batch >= step && at.batch_in_epoch == 0 && at.epoch > 0;
    return ended ? at.epoch : at.epoch + 1;
  }
};

// Facts of the run, given to destinations first.
struct LogStart {
  std::string run_name;
  std::string run_dir;
  int rank = 0;
  int world = 1;
  Time max_duration;           // may change during the run: see StepReport
  int64_t dataloader_len = 0;  // batches per epoch
  Timestamp at;                // start of training
  int64_t step = 0;            // the last step before the start; 0 = a new run
  bool resumes = false;        // from this run's own checkpoint; earlier records up to `step` stay
  std::string checkpoint;      // folder of the loaded checkpoint, or ""
  int64_t parameters = 0;      // numbers in all parameters of the model
  std::vector<std::string> recipe_changes;  // since the checkpoint: "optimizer.lr = 0.05 (was 0.1)"
};

// The reason why training ended.
enum class TrainingEnd : uint8_t {
  kMaxDuration,
  kStopTraining,  // by an algorithm or callback
  kRequest,       // of the user
  kStopAt,        // [train] stop_at
  kNothingLeft,   // the run resumed at its end
};

// The end of training, without an error.
struct TrainingEnded {
  TrainingEnd why = TrainingEnd::kMaxDuration;
  std::string stop_reason;     // of kStopTraining; "" = not said
  int64_t skipped_steps = 0;   // in this process, for lack of finite losses or gradients
  Time max_duration;           // at the end
  int64_t skipped_at_end = 0;  // in a row, if the run ends with skipped steps alone (EndKind::kSkipping)
};

// Figures of a step over all ranks.
struct StepReport {
  double loss = 0;  // the mean
  double lr = 0;
  double step_ms = 0;
  double data_wait_ms = 0;  // of step_ms, rank 0's wait for its batch
  double data_read_ms = 0;  // threads of rank 0 took for the batch, added up
  double data_disk_ms = 0;  // of data_read_ms, they were blocked: the disk
  double samples = 0;
  double samples_per_s = 0;
  int grad_accum = 1;
  int64_t device_train_microbatch_size = 0;
  double memory_peak_mb = 0;  // of the largest rank
  Time max_duration;          // after the step
  double progress = 0;        // fraction of max_duration
  LoggedMetrics metrics;      // "metrics/train/MulticlassAccuracy"
};

// Receives records: composer.loggers.LoggerDestination. The calls below are in the order of a run and never
// overlap, on a thread of the destination, behind a queue. A slow destination loses records, which are
// counted, but never delays the run. A destination that throws is reported in the log and gets no more calls.
// A destination that does not finish in time is named at the end, and the process ends without it. Events
// (functions of Callback) come on the training thread: data used by both needs a lock.
class LoggerDestination : public Callback {
 public:
  // Ranks may have different destinations: no reductions.
  int64_t reductions(const State&) const final { return 0; }

  // False: ranks other than 0 log, too.
  virtual bool rank_zero_only() const { return true; }
  // True if a checkpoint is published only after `flush(sync)`, so that a resumed run finds the records of
  // its steps. For destinations that wait only for a disk.
  virtual bool durable() const { return false; }
  // Longest wait of a checkpoint for `flush(sync)`. A destination that was late is hardly waited for again.
  virtual Nanoseconds sync_timeout() const { return std::chrono::seconds(1); }
  // Least training time between step reports. Reports in between are skipped, but the run's last is not: for
  // a display, whose thread would be woken at every step in vain.
  virtual Nanoseconds report_interval() const { return Nanoseconds(0); }
  // True if the destination ignores hyperparameters, texts, images and the Trainer's own metrics; records
  // that all destinations ignore are not made.
  virtual bool numbers_only() const { return false; }

  virtual void open(const LogStart&) {}
  virtual void log_hyperparameters(const LoggedHyperparameters&, const LogTime&) {}
  virtual void log_metrics(const LoggedMetrics&, const LogTime&) {}
  virtual void log_traces(const LoggedTraces&, const LogTime&) {}
  virtual void log_text(const LoggedText&, const LogTime&) {}
  virtual void log_table(const LoggedTable&, const LogTime&) {}
  virtual void log_images(const LoggedImages&, const LogTime&) {}
  // Records of the Trainer: figures of a step, metrics of an evaluation, and other metrics (times). Logged
  // as metrics under Composer's names by default.
  virtual void log_step(const StepReport& report, const LogTime& time);
  virtual void log_evaluation(const LoggedMetrics& metrics, const LogTime& time) {
    log_metrics(metrics, time);
  }
  virtual void log_trainer_metrics(const LoggedMetrics& metrics, const LogTime& time) {
    log_metrics(metrics, time);
  }
  virtual void log_training_end(const TrainingEnded&, const LogTime&) {}
  // The text of Model::closing_text at the end of the run.
  virtual void log_closing_text(const std::string&) {}
  // All records of a step before its evaluations are logged. The evaluations may happen only in a resumed
  // run.
  virtual void evaluation_due(const LogTime&) {}
  // A step and its records are complete.
  virtual void step_end(const LogTime&) {}
  // Called when the queue is empty. `sync`: write to the device.
  virtual void flush(bool sync) { static_cast<void>(sync); }
  // True if `flush` could not write all lines; `flush` is called again soon.
  virtual bool busy() const { return false; }
  // The end of a successful run. Called repeatedly until true, at most for `finishes_within`; `late` marks
  // the last call.
  virtual bool finish(bool late) {
    static_cast<void>(late);
    flush(false);
    return true;
  }
  // At most ten seconds count, because other ranks wait.
  virtual Nanoseconds finishes_within() const { return std::chrono::seconds(5); }
};

// Records of the Trainer.
struct EvaluationLogged {
  LoggedMetrics metrics;
};
struct TrainerMetrics {
  LoggedMetrics metrics;
};
struct ClosingText {
  std::string text;
};
struct EvaluationDue {};
struct StepEnded {};

// One call of a LoggerDestination.
struct LogEntry {
  LogTime time;
  std::variant<LoggedMetrics, LoggedHyperparameters, LoggedTraces, LoggedText, LoggedTable, LoggedImages,
               StepReport, EvaluationLogged, TrainerMetrics, TrainingEnded, ClosingText, EvaluationDue,
               StepEnded>
      what;

  void log_to(LoggerDestination& destination) const;
  bool is_record() const;
};

// Shared by several destinations.
using LogEntries = std::shared_ptr<const std::vector<LogEntry>>;

int64_t records_in(const std::vector<LogEntry>& entries);
// The memory of the entries, about.
int64_t bytes_in(const std::vector<LogEntry>& entries);

}  // namespace tutti
