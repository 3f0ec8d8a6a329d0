#pragma once

namespace tutti {

// Names in a run folder.

inline constexpr const char* kRecipeFile = "recipe.toml";     // resolved
inline constexpr const char* kMetricsFile = "metrics.jsonl";  // training/loggers/metrics_file.h
inline constexpr const char* kResultFile = "result.json";     // training/loggers/run_result.h

// `tutti stop` creates this empty file in the run folder; rank 0's Supervisor removes the file and stops the
// run.
inline constexpr const char* kStopFile = "stop";

// The file in the run folder that rank 0 locks during the run.
inline constexpr const char* kRunLock = ".lock";

}  // namespace tutti
