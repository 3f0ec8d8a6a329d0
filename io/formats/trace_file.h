#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/replaced_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"

namespace tutti {

// Writes Chrome's Trace Event Format (a JSON object with "traceEvents"), which Perfetto opens. Times are
// since the beginning of the trace, and must not decrease on a track.
class TraceFile {
 public:
  // A thread of a process. Every tid is unique in the file.
  struct Track {
    int64_t pid = 0, tid = 0;
  };
  using Args = std::vector<std::pair<std::string_view, std::variant<int64_t, std::string_view>>>;

  // Replaces the file at `path` when closed. All methods that write throw OperatingError.
  TraceFile(Disk& disk, const std::string& path);

  void name_process(int64_t pid, const std::string& name);
  void name_thread(Track track, std::string_view name);

  // A slice of a track. Slices nest: `end` ends the last one begun.
  void begin(Track track, std::string_view name, Nanoseconds time, const Args& args);
  void end(Track track, Nanoseconds time);
  // A whole slice, of a track of whole slices alone; in any order.
  void slice(Track track, std::string_view name, Nanoseconds time, Nanoseconds duration);
  // The value of a curve of the process `track.pid` from `time` on; must be finite.
  void count(Track track, std::string_view name, Nanoseconds time, double value);
  // An instant event of a track.
  void mark(Track track, std::string_view name, Nanoseconds time, const Args& args);
  // An instant event of the whole process.
  void mark_process(Track track, std::string_view name, Nanoseconds time);
  // The two ends of an arrow between the open slices of two tracks. `arrow`: an id for both ends.
  void leave(Track from, std::string_view name, Nanoseconds time, int64_t arrow);
  void arrive(Track to, std::string_view name, Nanoseconds time, int64_t arrow);

  void close();  // must be the last call; otherwise there is no file

 private:
  void open_event(char phase, Track track);
  void timed_event(char phase, Track track, Nanoseconds time);
  void microseconds(std::string_view key, Nanoseconds value);
  void named_event(char phase, Track track, std::string_view name, Nanoseconds time);
  void name_event(Track track, std::string_view what, std::string_view name);
  void arrow_event(char phase, Track track, std::string_view name, Nanoseconds time, int64_t arrow);
  void args(const Args& args);
  void text(std::string_view text);
  void close_event();
  void flush();

  std::unique_ptr<FreshFile> fresh_;
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace tutti
