#pragma once

#include <string>

namespace tutti {

// A name of Composer's, PyTorch's or Lightning's that the catalogs have under another name, or lack.
struct ForeignName {
  std::string
      name;  // "SpeedMonitor", "Trainer.fit"; a lookup may omit the part before the dot and ignores case
  // The counterpart in tutti: a place as in `explain` ([[callbacks]] kind = "speed_monitor", [train]
  // grad_accum), a command ("tutti eval"), "the event fit_start", "the time unit ep", or a header for C++
  // programs. "" = none.
  std::string target;
  std::string note = "";  // an additional line; without a target: "not carried over: ..." or "not yet: ..."
  std::string origin = "Composer's";

  bool is_called(const std::string& other) const;
  // "Composer's SpeedMonitor is [[callbacks]] kind = "speed_monitor"", or why tutti has none.
  std::string translation() const;
};

}  // namespace tutti
