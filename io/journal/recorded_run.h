#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/journal/recorded_job.h"

namespace tutti {

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
