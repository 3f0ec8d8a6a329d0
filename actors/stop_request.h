#pragma once

namespace tutti {

// `tutti stop` puts an empty file of this name into the run folder; rank 0's Supervisor finds and removes it.
inline constexpr const char* kStopFile = "stop";

}  // namespace tutti
