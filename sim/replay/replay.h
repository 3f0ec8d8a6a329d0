#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti {

struct ReplayOptions {
  std::string run_dir;                      // of the recorded run
  int64_t start = 0;                        // number of the attempt (recorded_start); 0: the newest
  std::optional<int64_t> until;             // the last step to replay, from 1
  std::optional<int64_t> break_at;          // write the state of every rank before this step to HDF5 files
  int rank = -1;                            // the rank with digests to compare; -1: all
  std::vector<std::string> overrides = {};  // of the recorded recipe, whose commands are names: "a.b=v" each
  bool on_cpu = false;                      // in the place of the device that the run was recorded on
};

struct ReplayResult {
  bool same = true;
  std::string text;  // a line of success, or the first difference
};

// Runs all ranks of a recorded run again in this process, with the recorded order of messages and the
// recorded inputs, and compares every digest. Writes stay in memory. A run that was recorded on a device
// which this machine lacks is replayed on the CPU: messages between ranks must be the same, losses are
// compared to a tolerance, and memory runs out at the recorded place. Throws UserError if no such record can
// be replayed on this machine.
ReplayResult replay(const ReplayOptions& options);

}  // namespace tutti
