#pragma once

#include <string>
#include <vector>

#include "io/formats/wandb_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {

// The rows of a file, read by cutting off one after the other: the last first.
inline std::vector<WandbRow> rows_of_file(const std::string& path, int64_t last) {
  PosixDisk disk;
  std::vector<WandbRow> rows;
  const std::string copy = path + ".copy";
  for (int64_t step = last; step >= 0; --step) {
    write_text(copy, read_text(path));
    if (auto row = WandbFile(disk, copy).resume(step).row; !row.empty())
      rows.insert(rows.begin(), {step, row});
  }
  return rows;
}

}  // namespace tutti
