#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/rank_end.h"

namespace tutti {

// A journal's last record: "exit code 0 without metrics.jsonl", the logs being those that the rank did not
// wait for, or why it did not come to its end.
std::string end_text(const RankEnd& end);
// The rank came to its end, by such a text; all its logs did too.
bool came_to_end(const std::string& end_text);
bool came_to_end_with_logs(const std::string& end_text);

// The host of ranks that share one process.
inline constexpr const char* kLocalHost = "this process";

// What a journal holds.
enum class JournalLevel {
  kOff,
  kControl,  // every message and recorded input
  kFull      // also digests
};

// The job as the head of a journal tells it, and the machine as far as bits depend on it.
struct RecordedJob {
  std::string recipe;  // as resolved, TOML
  std::string run_dir;
  std::string resume;  // what the job was to go on from: "" = nothing, "auto", a folder
  std::string nonce;   // of the start; all ranks' journals of one start share it
  JournalLevel level = JournalLevel::kControl;
  int world = 1;
  int rank = 0;
  std::string host;
  std::string build;  // "tutti 0.1.0, libtorch 2.11, GNU 12.2.0, commit 2c63f0a"
  std::string cpu;    // libtorch's CPU capability: "AVX2"
  uint64_t data_digest = 0;
  int64_t unix_ms = 0;         // when the start began
  bool own_listeners = false;  // a program trained it, with algorithms or callbacks of its own

  std::string to_json() const;
  static RecordedJob from_json(const std::string& text);  // throws OperatingError
};

// The folders of the journals of all starts, by their nonces, and of one start; a rank's file in that.
std::string journals_folder(const std::string& run_dir);
std::string journal_folder(const std::string& run_dir, const std::string& nonce);
std::string journal_path(const std::string& folder, int rank);

// The folder of a start's journals: `start` counts those that came to train and whose journals are there,
// from 1 in the order of time; 0: the newest. Throws UserError when there is none.
std::string recorded_start(const std::string& run_dir, int64_t start = 0);

// The steps that a rank's journal has the beginning of, as metrics.jsonl counts; 0 to 0 where there are none.
struct RecordedSteps {
  int64_t first = 0, last = 0;
};
RecordedSteps recorded_steps(const std::string& path);

// A start of a run that was recorded, which may still be under way.
struct RecordedRun {
  std::string folder;
  std::vector<RecordedJob> heads;  // by rank

  int world() const { return static_cast<int>(heads.size()); }
  std::string path(int rank) const { return journal_path(folder, rank); }
};

// Throws UserError when there is none, or a rank's journal is missing or has no head.
RecordedRun recorded_run(const std::string& run_dir, int64_t start = 0);

}  // namespace tutti
