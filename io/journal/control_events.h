#pragma once

#include <string_view>

namespace tutti {

// What a rank's Sync records of a control packet to or from another rank's Supervisor: before it sends it,
// and when it has come. The detail is the other rank. Heartbeats are not recorded. Packets carry no number:
// those of one rank to another stay in order (runtime/transport.h), so in the two journals of a start the
// n-th that was received is the n-th that was sent.
inline constexpr std::string_view kControlSent = "control sent";
inline constexpr std::string_view kControlReceived = "control received";

}  // namespace tutti
