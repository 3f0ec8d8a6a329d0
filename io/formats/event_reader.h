#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// Reads files of EventFile, each up to its first torn record. `paths`: in the order of writing. Records that
// a later attempt has invalidated (EventFile::restart) are left out.

// The records of `step`, without their times.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step);

// An image or a text in a file.
struct ShownRecord {
  std::string tag;
  int64_t step = 0;
  bool is_image = false;  // a PNG; else Markdown
  std::string path;       // the file with its bytes, and where they are
  uint64_t offset = 0, bytes = 0;
};
std::vector<ShownRecord> images_and_texts(const Disk& disk, const std::vector<std::string>& paths);

}  // namespace tutti
