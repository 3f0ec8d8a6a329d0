#pragma once

namespace tutti {

// `tutti stop` creates this empty file in the run folder; rank 0's Supervisor removes the file and stops the
// run.
inline constexpr const char* kStopFile = "stop";

// The file in the run folder that rank 0 locks during the run.
inline constexpr const char* kRunLock = ".lock";

}  // namespace tutti
