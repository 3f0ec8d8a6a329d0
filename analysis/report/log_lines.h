#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// A warning or an error of the logs in a run's folder; the same text of several ranks is one.
struct LogFault {
  std::string when;  // "2026-11-23 19:24:26.254", local time of the rank that wrote it first
  bool is_error = false;
  std::vector<int> ranks;
  std::string text;
};

struct LogFaults {
  std::vector<LogFault> lines;  // by time; the newest
  int64_t left_out = 0;         // older ones
};

// Reads log/rank-N.log of ranks 0 to world - 1.
LogFaults log_faults(const Disk& disk, const std::string& run_dir, int world);

}  // namespace tutti
