#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// In a journal's last record, between the exit code and the names of loggers that hung or were slow: the run
// did not wait for them.
inline constexpr const char* kEndedWithout = " without ";

// The host of ranks that share one process.
inline constexpr const char* kLocalHost = "this process";

// The job as the head of a journal tells it, and the machine as far as bits depend on it.
struct RecordedJob {
  std::string recipe;  // as resolved, TOML
  std::string run_dir;
  std::string resume;  // what the job was to go on from: "" = nothing, "auto", a folder
  std::string nonce;   // of the start; all ranks' journals of one start share it
  std::string level;   // "control" or "full"
  int world = 1;
  int rank = 0;
  std::string host;
  std::string build;  // "tutti 0.1.0, libtorch 2.11, GNU 12.2.0, commit 2c63f0a"
  std::string cpu;    // libtorch's CPU capability: "AVX2"
  uint64_t data_digest = 0;
  int64_t unix_ms = 0;         // when the start began
  bool own_listeners = false;  // a program trained it, with algorithms or callbacks of its own

  std::string to_json() const;
  static RecordedJob from_json(const std::string& text);  // throws OperatingError
};

}  // namespace tutti
