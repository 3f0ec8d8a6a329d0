#pragma once

#include <string>

#include "runtime/disk.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

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
