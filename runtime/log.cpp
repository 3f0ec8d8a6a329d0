#include "runtime/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <string_view>
#include <thread>

#include "runtime/printable.h"
#include "runtime/regular_file.h"
#include "runtime/terminal_output.h"

namespace tutti {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

TextStyle style_of(spdlog::level::level_enum level) {
  if (level == spdlog::level::warn) return TextStyle::kYellow;
  return level == spdlog::level::err ? TextStyle::kRed : TextStyle::kDim;
}

// Flushes each line, so that a killed rank loses none.
class SpdLog final : public Log {
 public:
  SpdLog(std::vector<spdlog::sink_ptr> sinks, int rank) : logger_("tutti", sinks.begin(), sinks.end()) {
    logger_.set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ rank " + std::to_string(rank) + " %v");
    logger_.set_level(spdlog::level::debug);
    logger_.flush_on(spdlog::level::debug);
  }
  void write(LogLevel level, const std::string& line) override {
    const std::string text = printable(line);
    logger_.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
  }
  void flush() override { logger_.flush(); }

 private:
  spdlog::logger logger_;
};

class NullLog final : public Log {
 public:
  void write(LogLevel, const std::string&) override {}
  void flush() override {}
};

// Writes to standard error without blocking. The destructor waits up to a second for a slow reader.
class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ~TerminalSink() override {
    for (int wait = 0; wait < 100 && out_.busy(); ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      out_.flush();
    }
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    const std::string_view whole(text.data(), text.size());
    const std::size_t begin = line.color_range_start, end = line.color_range_end;
    out_.print(std::string(whole.substr(0, begin)) +
               styled(shows_colors(STDERR_FILENO), style_of(line.level), whole.substr(begin, end - begin)) +
               std::string(whole.substr(end)));
  }
  void flush_() override { out_.flush(); }

 private:
  TerminalOutput out_{stderr};
};

spdlog::sink_ptr terminal(spdlog::level::level_enum from) {
  auto sink = std::make_shared<TerminalSink>();
  sink->set_level(from);
  return sink;
}

// Why no log may be appended to what is at the path: it is a link, a pipe; "" = it may.
std::string trouble_at(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return "";
  if (S_ISLNK(facts.st_mode)) return path + " is a link, and nothing is written through links";
  const std::string_view what = no_file(facts.st_mode);
  return what.empty() ? "" : path + ' ' + std::string(what);
}

}  // namespace

std::unique_ptr<Log> make_log(const std::string& path, int rank, bool to_terminal) {
  std::vector<spdlog::sink_ptr> sinks;
  std::string failure = trouble_at(path);
  if (!path.empty() && failure.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    } catch (const spdlog::spdlog_ex& error) {
      failure = error.what();
    }
  }
  const bool no_file = sinks.empty();
  if (to_terminal || !failure.empty())
    sinks.push_back(terminal(no_file ? spdlog::level::info : spdlog::level::warn));
  auto log = std::make_unique<SpdLog>(std::move(sinks), rank);
  if (!failure.empty()) log->warning("no log file: " + failure);
  return log;
}

std::unique_ptr<Log> make_null_log() { return std::make_unique<NullLog>(); }

}  // namespace tutti
