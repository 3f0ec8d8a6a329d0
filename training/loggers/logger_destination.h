#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/clock.h"
#include "training/engine/callback.h"
#include "training/engine/logger.h"
#include "training/time/timestamp.h"

namespace tutti {

// When something was logged.
struct LogTime {
  // The step that it belongs to, from 1. A run that goes on from a checkpoint of step N logs once more what
  // belongs to later steps.
  int64_t step = 0;
  // When: at.batch is what Composer calls the step, the number of batches that were done.
  Timestamp at;
};

// What a destination is told of the run before anything else.
struct LogStart {
  std::string run_name;
  std::string run_dir;
  int rank = 0;
  int world = 1;
  Time max_duration;
  int64_t dataloader_len = 0;  // batches of an epoch
  Timestamp at;                // where training begins
  int64_t step = 0;            // after which it begins; 0: afresh
  bool resumes = false;    // from this run's own checkpoint: what an earlier start logged up to `step` stays
  std::string checkpoint;  // the folder that it begins from, or ""
};

// The numbers of a step, of all ranks together.
struct StepReport {
  double loss = 0;  // the mean
  double lr = 0;
  double step_ms = 0;
  double samples = 0;
  double samples_per_s = 0;
  int grad_accum = 1;
  int64_t device_train_microbatch_size = 0;
  double memory_peak_mb = 0;  // of the largest rank
  double progress = 0;        // of max_duration, in [0, 1]
  LoggedMetrics metrics;      // "metrics/train/MulticlassAccuracy"
};

// Where what is logged goes: composer.loggers.LoggerDestination. Below are the calls in the order of a run.
// They come one at a time on a thread of the destination's own, behind a queue: one that takes long loses
// records, which are counted, but holds nobody up; one that throws, whatever it is, is told of in the log and
// called no more; one that never returns, or has too much left to do, is named at the end, and the process
// ends without it. Events (Callback's functions) come on the training thread: what both touch needs a lock.
class LoggerDestination : public Callback {
 public:
  // None: ranks may have different destinations.
  int64_t reductions(const State&) const final { return 0; }

  // Of the ranks other than 0 only those log that say so.
  virtual bool rank_zero_only() const { return true; }
  // Whether a checkpoint is published after `flush(sync)` only, so that a run which goes on from it finds the
  // records of its steps. For destinations that wait for a disk and nothing else.
  virtual bool durable() const { return false; }
  // How long a checkpoint waits for `flush(sync)`, and training for room in a full queue, at most. In the
  // long run neither waits for more than a tenth of the time.
  virtual Nanoseconds sync_timeout() const { return std::chrono::seconds(1); }
  virtual Nanoseconds full_queue_timeout() const { return Nanoseconds(0); }
  // True if it ignores hyperparameters, texts, tables, images and the Trainer's own metrics. They are not
  // even made where all destinations do.
  virtual bool numbers_only() const { return false; }

  virtual void open(const LogStart&) {}
  virtual void log_hyperparameters(const LoggedHyperparameters&, const LogTime&) {}
  virtual void log_metrics(const LoggedMetrics&, const LogTime&) {}
  virtual void log_traces(const LoggedTraces&, const LogTime&) {}
  virtual void log_text(const LoggedText&, const LogTime&) {}
  virtual void log_table(const LoggedTable&, const LogTime&) {}
  virtual void log_images(const LoggedImages&, const LogTime&) {}
  // What the Trainer logs itself: a step's numbers, the metrics of an evaluation, and all else (times). They
  // count as metrics, under Composer's names, unless a destination tells them apart.
  virtual void log_step(const StepReport& report, const LogTime& time);
  virtual void log_evaluation(const LoggedMetrics& metrics, const LogTime& time) {
    log_metrics(metrics, time);
  }
  virtual void log_trainer_metrics(const LoggedMetrics& metrics, const LogTime& time) {
    log_metrics(metrics, time);
  }
  // What a language model writes at the end of the run.
  virtual void log_closing_text(const std::string&) {}
  // All of a step before its evaluations was logged. An evaluation may be left to the run that goes on.
  virtual void evaluation_due(const LogTime&) {}
  // A step and all that was logged of it is over.
  virtual void step_end(const LogTime&) {}
  // Whenever nothing more waits in the queue. `sync`: to the device.
  virtual void flush(bool sync) { static_cast<void>(sync); }
  // Whether `flush` has something left to do although it was called: it is called again soon.
  virtual bool busy() const { return false; }
  // The end of a run that ends well. Called again and again until it says true, or for `finishes_within` at
  // most; the last time `late` says that nobody waits any longer.
  virtual bool finish(bool late) {
    static_cast<void>(late);
    flush(false);
    return true;
  }
  // Ten seconds at most count: other ranks wait.
  virtual Nanoseconds finishes_within() const { return std::chrono::seconds(5); }
};

// What the Trainer logs itself.
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
               StepReport, EvaluationLogged, TrainerMetrics, ClosingText, EvaluationDue, StepEnded>
      what;

  void tell(LoggerDestination& destination) const;
  bool is_record() const;
};

// Several destinations read them at once.
using LogEntries = std::shared_ptr<const std::vector<LogEntry>>;

int64_t records_in(const std::vector<LogEntry>& entries);

}  // namespace tutti
