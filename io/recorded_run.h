#pragma once

#include <string>
#include <vector>

#include "io/recorded_job.h"

namespace tutti {

// The folders of the journals of all starts, by their nonces, and of one start; a rank's file in that.
std::string journals_folder(const std::string& run_dir);
std::string journal_folder(const std::string& run_dir, const std::string& nonce);
std::string journal_path(const std::string& folder, int rank);

// The folder of the newest start that left journals. Throws UserError when there is none.
std::string newest_journal(const std::string& run_dir);

// The newest start of a run that was recorded, which may still be under way.
struct RecordedRun {
  std::string folder;
  std::vector<RecordedJob> heads;  // by rank

  int world() const { return static_cast<int>(heads.size()); }
  std::string path(int rank) const { return journal_path(folder, rank); }
};

// Throws UserError when there is none, or a rank's journal is missing or has no head.
RecordedRun newest_recorded_run(const std::string& run_dir);

}  // namespace tutti
