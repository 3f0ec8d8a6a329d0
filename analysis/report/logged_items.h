#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "runtime/disk.h"

namespace tutti {

// An image, a table or a text that a run's loggers wrote.
struct LoggedItem {
  std::string name;     // "Images/Train"
  int64_t batches = 0;  // finished when it was logged
  std::string png;      // of an image, else ""
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string markdown;  // a text, or a table that only TensorBoard's files have
};

struct LoggedItems {
  std::vector<LoggedItem> items;  // by name, then time
  int64_t left_out = 0;
};

// Of each name a few, evenly over the run: images from TensorBoard's files, tables and texts from the logger
// `jsonl`, or else TensorBoard's. Images of at most `image_bytes` together, the newest first; long texts are
// cut. Empty for a run without such loggers.
LoggedItems logged_items(const Disk& disk, const std::string& run_dir, const Setting& recipe,
                         uint64_t image_bytes);

}  // namespace tutti
