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
  bool goes_on = false;  // from this run's own checkpoint: what an earlier start logged up to `step` stays
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

  virtual void open(const LogStart&) {}
  virtual void log_hyperparameters(const LoggedHyperparameters&, const LogTime&) {}
  virtual void log_metrics(const LoggedMetrics&, const LogTime&) {}
  virtual void log_traces(const LoggedTraces&, const LogTime&) {}
  virtual void log_text(const LoggedText&, const LogTime&) {}
  virtual void log_table(const LoggedTable&, const LogTime&) {}
  virtual void log_images(const LoggedImages&, const LogTime&) {}
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

struct StepEnded {};

// One call of a LoggerDestination.
struct LogEntry {
  LogTime time;
  std::variant<LoggedMetrics, LoggedHyperparameters, LoggedTraces, LoggedText, LoggedTable, LoggedImages,
               StepEnded>
      what;

  void tell(LoggerDestination& destination) const;
  bool is_record() const { return !std::holds_alternative<StepEnded>(what); }
};

// Several destinations read them at once.
using LogEntries = std::shared_ptr<const std::vector<LogEntry>>;

int64_t records_in(const std::vector<LogEntry>& entries);

}  // namespace tutti
