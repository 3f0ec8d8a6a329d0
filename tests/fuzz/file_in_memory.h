#pragma once

#include <stdexcept>
#include <string>

#include "runtime/error.h"

namespace tutti::fuzz {

// A folder of this process in TMPDIR, or else in /dev/shm; removed at the process's end.
const std::string& folder();

// Writes a file below folder(), with the folders on the way, and returns its path.
std::string write_file(const std::string& name, const std::string& bytes);
// A file of the source tree: "tests/golden/numpy/tokens.npy".
std::string source_file(const std::string& path);

// Throws std::logic_error for the text of an error that is a library's, and not for people. Ignored where
// libFuzzer makes up the bytes: it learns those words, and errors quote them.
void require_plain(const std::string& error);
void ignore_words();

// Reads, or catches an error that the program knows.
template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const RunError& error) {
    require_plain(error.what());
  }
}

}  // namespace tutti::fuzz
