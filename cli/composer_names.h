#pragma once

#include <string>
#include <vector>

namespace tutti {

// What Composer's users call a thing that the catalogs have under another name, or not at all.
struct ComposerName {
  std::string name;  // "SpeedMonitor", "Trainer.fit": the part after the dot will do, in any case
  // What it is in tutti: a place as `explain` shows it ([[callbacks]] kind = "speed_monitor", [train]
  // grad_accum), a command ("tutti eval"), "the event fit_start", "the time unit ep", or the header that a
  // program of one's own includes. "" = nothing.
  std::string target;
  std::string note = "";  // a line more; without a target it begins with "not carried over: " or "not yet: "
  std::string whose = "Composer's";

  bool is_called(const std::string& other) const;
};

// All but the names that the catalogs themselves have.
const std::vector<ComposerName>& composer_names();

}  // namespace tutti
