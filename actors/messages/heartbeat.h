#pragma once

#include <optional>
#include <string>

#include "runtime/recorder.h"

namespace tutti {

// A rank's report about itself, twice a second: the last event that its Compute recorded, how long ago, and
// whether it waits for other ranks (so that the blame falls on the one that does not).
struct Heartbeat {
  TraceKind last = TraceKind::kStarts;
  int64_t step = -1;
  double age_s = 0;
  bool waiting = false;

  bool unhurried() const;    // `last` may take as long as it takes
  std::string text() const;  // "step 12, forward, 0.3 s ago"
};

std::string heartbeat_text(const Recorder& recorder, TimePoint now, bool waiting);

// The heartbeat in a control packet, or nothing when the packet is something else.
std::optional<Heartbeat> parse_heartbeat(const std::string& packet);

}  // namespace tutti
