#pragma once

#include <optional>
#include <string>

#include "runtime/recorder.h"

namespace tutti {

// What Compute records of itself when it is not to be hurried.
inline constexpr const char* kPrepares = "prepares model and checkpoint";
inline constexpr const char* kDone = "done";
inline constexpr const char* kWritesText = "writes a sample of text";
inline constexpr const char* kPredicts = "predicts";
inline constexpr const char* kWaitsForDisk = "waits for its last checkpoint";
inline constexpr const char* kWaitsForLogs = "waits for a log";

// And by State::still_at_work, after which it has as long as after anything else.
inline constexpr const char* kListens = "a listener is at work";

// What a rank tells about itself twice a second: the last thing that its Compute did, how long ago, and
// whether it waits for other ranks (so that the blame falls on the one that does not).
struct Heartbeat {
  std::string what;  // "forward"
  int64_t step = -1;
  double age_s = 0;
  bool waiting = false;

  bool unhurried() const;    // one of the above
  std::string text() const;  // "step 12, forward, 0.3 s ago"
};

std::string heartbeat_text(const Recorder& recorder, TimePoint now, bool waiting);

// The heartbeat in a control packet, or nothing when the packet is something else.
std::optional<Heartbeat> parse_heartbeat(const std::string& packet);

}  // namespace tutti
