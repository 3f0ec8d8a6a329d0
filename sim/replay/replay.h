#pragma once

#include <optional>
#include <string>

namespace tutti {

struct ReplayOptions {
  std::string run_dir;              // of the recorded run
  int64_t start = 0;                // which of its starts, as recorded_start counts; 0: the newest
  std::optional<int64_t> until;     // the last step that is replayed; from 1
  std::optional<int64_t> break_at;  // before this step the state of every rank is written to HDF5 files
  int rank = -1;                    // whose digests are compared; -1: all
};

struct ReplayResult {
  bool same = true;
  std::string text;  // a line of success, or the first difference
};

// Runs all ranks of a recorded run once more in this process, each taking its messages in the recorded order
// with the recorded inputs, and compares every digest. What it would write goes nowhere. Throws
// UserError when there is no such record, or it cannot be replayed here.
ReplayResult replay(const ReplayOptions& options);

}  // namespace tutti
