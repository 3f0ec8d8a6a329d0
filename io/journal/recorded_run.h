#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/rank_end.h"

namespace tutti {

// The text of a journal's last record: "exit code 0", or the error that ended the rank.
std::string end_text(const RankEnd& end);
// True for the end_text of a rank that ended without an error.
bool ended_without_error(const std::string& end_text);

// The host of ranks that share one process.
inline constexpr const char* kLocalHost = "this process";

// The setting journal.level.
enum class JournalLevel {
  kOff,
  kControl,  // every message and recorded input
  kFull      // also digests
};

// The head of a journal: the job, and properties of the machine that may change bits.
struct RecordedJob {
  std::string recipe;  // resolved, as TOML
  std::string run_dir;
  std::string resume;  // where the job was to resume from: "" = nowhere, "auto", a folder
  std::string nonce;   // identifies the attempt; the same in the journals of each rank
  JournalLevel level = JournalLevel::kControl;
  int world = 1;
  int rank = 0;
  std::string host;
  std::string build;        // "tutti 0.1.0, libtorch 2.11, GNU 12.2.0, commit 2c63f0a"
  std::string cpu;          // libtorch's CPU capability: "AVX2"
  std::string device = {};  // Device::name, "" = the CPU
  uint64_t data_digest = 0;
  int64_t unix_ms = 0;         // when the attempt began
  bool own_listeners = false;  // trained by a program with algorithms or callbacks of its own
  std::string command;         // that started the rank; "" in older journals
  std::string digests;         // the kind of digests; "" in older journals: XXH3

  std::string to_json() const;
  static RecordedJob from_json(const std::string& text);  // throws OperatingError
};

// The folder of all journals of a run; an attempt's subfolder, named by its nonce; a rank's file in the
// subfolder.
std::string journals_folder(const std::string& run_dir);
std::string journal_folder(const std::string& run_dir, const std::string& nonce);
std::string journal_path(const std::string& folder, int rank);

// The folder of an attempt's journals. An attempt is one launch of the job; a resumed run has several.
// `start` counts from 1, in the order of time, the attempts that trained and have journals; 0: the newest.
// Throws UserError if there is none.
std::string recorded_start(const std::string& run_dir, int64_t start = 0);

// The folders of all attempts that trained and have journals, in the order of time.
std::vector<std::string> recorded_starts(const std::string& run_dir);

// "\nignored: ...", a line to append, that names the attempts after the newest trained attempt: their
// journals are lost or break off before the training. "" without such attempts, or if no attempt trained.
std::string ignored_attempts(const std::string& run_dir);

// The first and last step that began, counted as in metrics.jsonl; 0 and 0 if none did.
struct RecordedSteps {
  int64_t first = 0, last = 0;
};
RecordedSteps recorded_steps(const std::string& path);

// The journals of one attempt, which may still be running.
struct RecordedRun {
  std::string folder;
  std::vector<RecordedJob> heads;  // by rank

  int world() const { return static_cast<int>(heads.size()); }
  std::string path(int rank) const { return journal_path(folder, rank); }
};

// Throws UserError if there is no such attempt, or a rank's journal is missing; OperatingError if a journal
// cannot be read, or its head is damaged.
RecordedRun recorded_run(const std::string& run_dir, int64_t start = 0);

}  // namespace tutti
