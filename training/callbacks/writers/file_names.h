#pragma once

#include <string>

#include "runtime/disk.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

// The path of a callback's file: `pattern` with {run_name}, {rank}, {epoch} and {batch} replaced, relative
// to the run's folder unless absolute.
std::string file_name(const State& state, const std::string& pattern);

// Writes a file, making folders as needed. An existing file is kept and the new one gets another name,
// unless `overwrite`. A failure is a warning on stderr and does not end the training.
void write_beside(Disk& disk, const std::string& path, const std::string& text, bool overwrite);

void warn_unwritten(const std::string& why);

// Turns an OperatingError of `write` into that warning.
template <class Write>
void warn_if_unwritten(const Write& write) try {
  write();
} catch (const OperatingError& error) {
  warn_unwritten(error.what());
}

}  // namespace tutti
