#pragma once

namespace tutti {

// `tutti stop` puts an empty file of this name into the run folder; rank 0's Supervisor finds and removes it.
inline constexpr const char* kStopFile = "stop";

// The file in the run folder that rank 0 keeps locked while the run is under way.
inline constexpr const char* kRunLock = ".lock";

}  // namespace tutti
