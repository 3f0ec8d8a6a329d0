#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tutti {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Takes a warning; empty only where a function's comment allows it.
using Warn = std::function<void(const std::string& what)>;

// A rank's log, written by spdlog: to a file (log/rank-N.log), warnings and errors also to standard error.
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

// Lines begin with time, level and "rank N". If the file cannot be opened, logs to standard error instead.
// Otherwise uses standard error only if `to_terminal`: for level info and above if `path` is empty, else for
// warnings and errors.
std::unique_ptr<Log> make_log(const std::string& path, int rank, bool to_terminal);

// Drops all lines; for tests.
std::unique_ptr<Log> make_null_log();

}  // namespace tutti
