#pragma once

#include <string>

namespace tutti {

// Names in a run folder.

inline constexpr const char* kRecipeFile = "recipe.toml";     // resolved
inline constexpr const char* kMetricsFile = "metrics.jsonl";  // training/loggers/metrics_file.h
inline constexpr const char* kFetchedFolder = "fetched";      // the checkpoint of a remote load_path
inline constexpr const char* kUploadsFile = "uploads.json";   // io/remote/uploads.h
inline constexpr const char* kResultFile = "result.json";     // training/loggers/run_result.h

// `tutti stop` creates this empty file in the run folder; rank 0's Supervisor removes the file and stops the
// run.
inline constexpr const char* kStopFile = "stop";

// The file in the run folder that rank 0 locks during the run.
inline constexpr const char* kRunLock = ".lock";

// RUN_DIR/NAME, for commands that show a run, which other people may have made. Throws UserError if links
// lead out of the run's folder.
std::string path_in_run(const std::string& run_dir, const std::string& name);

// A path named by a recipe. As path_in_run for paths below the run's folder; any other path is accepted.
std::string require_no_link_out(const std::string& run_dir, const std::string& path);

// The path of a logger's file or folder: `pattern` with {run_name} and {rank} replaced, relative to the run
// folder unless absolute.
std::string logger_path(const std::string& run_dir, const std::string& run_name, int rank,
                        std::string pattern);

}  // namespace tutti
