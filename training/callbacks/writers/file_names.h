#pragma once

#include <string>

#include "runtime/disk.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

// Tells a callback when its interval has passed: see Interval.
class Due {
 public:
  explicit Due(const Time& every) : every_(every) {}

  bool at_batch_end(const State& state) const {
    return interval(state).at_batch_end(state.before_batch, state.timestamp);
  }
  bool at_epoch_end(const State& state) const {
    return interval(state).at_epoch_end(state.before_batch, state.timestamp);
  }
  bool at_iteration_end(const State& state) const {
    return interval(state).at_iteration_end(state.before_batch, state.timestamp);
  }

 private:
  Interval interval(const State& state) const { return {every_, state.max_duration, state.dataloader_len}; }

  Time every_;
};

// Where a callback writes: `pattern` with {run_name}, {rank}, {epoch} and {batch} put in, within the run's
// folder unless it begins with a slash.
std::string file_name(const State& state, const std::string& pattern);

// Writes a file, and whatever folders it needs, beside an older one of that name unless it may be written
// over. What cannot be written is a warning on stderr: no training ends for it.
void write_beside(Disk& disk, const std::string& path, const std::string& text, bool overwrite);

// Runs what writes. Its OperatingError becomes that warning.
template <class Write>
void warn_if_unwritten(const Write& write);

void warn_unwritten(const std::string& why);

template <class Write>
void warn_if_unwritten(const Write& write) try {
  write();
} catch (const OperatingError& error) {
  warn_unwritten(error.what());
}

}  // namespace tutti
