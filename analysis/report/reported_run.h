#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/metrics_table.h"
#include "analysis/rank_work.h"
#include "analysis/run_folder.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "io/journal/recorded_run.h"
#include "recipe/setting.h"
#include "runtime/disk.h"
#include "runtime/trace_event.h"

namespace tutti {

// A rank's part of an attempt.
struct RankSummary {
  int rank = 0;
  std::string host;
  WorkTimes times;
  std::string end;         // the journal's last record; "" if the rank was killed or is still running
  std::string incomplete;  // why the journal ends before the rank, or cannot be read; ""
};

// A failure in a step that the run survived.
struct StepFault {
  int64_t step = 0;
  int rank = 0;
  TraceKind kind = TraceKind::kSkipped;  // kOutOfMemory, kSkipped or kCheckpointFailed
};

// The contents of an attempt's journals.
struct StartSummary {
  RecordedJob job;  // rank 0's
  RecordedSteps steps;
  std::vector<RankSummary> ranks;
  std::vector<StepFault> faults;
};

// Reads the journals in an attempt's folder once. A journal that cannot be read is a rank's `incomplete`.
StartSummary summary_of_start(const std::string& folder);

// An image, a table or a text that a run's loggers wrote.
struct LoggedItem {
  std::string name;     // "Images/Train"
  int64_t batches = 0;  // finished when it was logged
  std::string png;      // of an image, else ""
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string markdown;  // a text, or a table that only TensorBoard's files have
};

struct LoggedItems {
  std::vector<LoggedItem> items;  // by name, then time
  int64_t left_out = 0;
};

// Of each name a few, evenly over the run: images from TensorBoard's files, tables and texts from the logger
// `jsonl`, or else TensorBoard's. Images of at most `image_bytes` together, the newest first; long texts are
// cut. Empty for a run without such loggers.
LoggedItems logged_items(const Disk& disk, const std::string& run_dir, const Setting& recipe,
                         uint64_t image_bytes);

// A warning or an error of the logs in a run's folder; the same text of several ranks is one message.
struct LogFault {
  std::string when;  // "2026-11-23 19:24:26.254", local time of the first rank with the message
  bool is_error = false;
  std::vector<int> ranks;
  std::string text;
};

struct LogFaults {
  std::vector<LogFault> lines;  // by time; the newest
  int64_t left_out = 0;         // older ones
};

// Reads log/rank-N.log of ranks 0 to world - 1.
LogFaults log_faults(const Disk& disk, const std::string& run_dir, int world);

// A report's data of one run.
struct ReportedRun {
  std::string path;  // as the user gave it
  std::string name;  // the folder's
  RunEnding ending;
  Setting recipe;  // resolved
  MetricsTable metrics;
  std::vector<StartSummary> starts;  // with journals, in the order of time
  std::vector<CheckpointSummary> checkpoints;
  LogFaults faults;
  LoggedItems logged;

  // The times of the newest fresh attempt and of its resumed attempts, by rank.
  std::vector<WorkTimes> times() const;
  int world() const;  // of the newest attempt; 0 if unknown
};

// Reads a run's folder, and as many bytes of logged images. Throws UserError for a missing folder, a folder
// that is no run's, or a run without a step.
ReportedRun read_run(const Disk& disk, const std::string& run_dir, uint64_t image_bytes);

}  // namespace tutti
