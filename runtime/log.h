#pragma once

#include <memory>
#include <string>

namespace tutti {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// A rank's log: a file of its own (log/rank-N.log), and warnings and errors to standard error too. spdlog is
// behind it.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, const std::string& line) = 0;
  virtual void flush() = 0;

  void debug(const std::string& line) { write(LogLevel::kDebug, line); }
  void info(const std::string& line) { write(LogLevel::kInfo, line); }
  void warning(const std::string& line) { write(LogLevel::kWarning, line); }
  void error(const std::string& line) { write(LogLevel::kError, line); }
};

// `path` empty: standard error only. Lines begin with time, level and "rank N". Falls back to standard error
// when the file cannot be opened. Errors reach standard error only where `to_terminal`.
std::unique_ptr<Log> make_log(const std::string& path, int rank, bool to_terminal);

// Drops everything; for tests.
std::unique_ptr<Log> make_null_log();

}  // namespace tutti
