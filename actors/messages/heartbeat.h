#pragma once

#include <optional>
#include <string>

#include "runtime/recorder.h"

namespace tutti {

// A rank's report on its own state, twice a second: the last event of its Compute, the event's age, and
// whether the rank waits for other ranks. The blame for a hang falls on a rank that does not wait.
struct Heartbeat {
  TraceKind last = TraceKind::kStarts;
  int64_t step = -1;
  double age_s = 0;
  bool waiting = false;

  bool unhurried() const;    // the work after `last` has no time limit
  std::string text() const;  // "step 12, forward, 0.3 s ago"
};

std::string heartbeat_text(const Recorder& recorder, TimePoint now, bool waiting);

// nullopt if the packet is not a heartbeat.
std::optional<Heartbeat> parse_heartbeat(const std::string& packet);

}  // namespace tutti
