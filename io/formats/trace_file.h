#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/clock.h"
#include "runtime/disk.h"

namespace tutti {

// Writes Chrome's Trace Event Format (a JSON object with "traceEvents"), which Perfetto opens. Times count
// from the trace's beginning; those of one track may not run backwards.
class TraceFile {
 public:
  // A thread of a process; in the whole file no two have the same tid.
  struct Track {
    int64_t pid = 0, tid = 0;
  };
  using Args = std::vector<std::pair<std::string_view, std::variant<int64_t, std::string_view>>>;

  // Replaces what is at `path`. Throws OperatingError, as all that writes.
  TraceFile(Disk& disk, const std::string& path);

  void name_process(int64_t pid, const std::string& name);
  void name_thread(Track track, std::string_view name);

  // A slice, within those of the track that are open; the last begun ends first.
  void begin(Track track, std::string_view name, Nanoseconds time, const Args& args);
  void end(Track track, Nanoseconds time);
  // Something without length on a track.
  void mark(Track track, std::string_view name, Nanoseconds time, const Args& args);
  // The same, of the process as a whole.
  void mark_process(Track track, std::string_view name, Nanoseconds time);
  // An arrow in two halves: from the slice that is open on the one track to the one on the other.
  void leave(Track from, std::string_view name, Nanoseconds time, int64_t arrow);
  void arrive(Track to, std::string_view name, Nanoseconds time, int64_t arrow);

  void close();  // nothing may follow; without it the file is cut short

 private:
  void open_event(char phase, Track track);
  void timed_event(char phase, Track track, Nanoseconds time);
  void named_event(char phase, Track track, std::string_view name, Nanoseconds time);
  void name_event(Track track, std::string_view what, std::string_view name);
  void arrow_event(char phase, Track track, std::string_view name, Nanoseconds time, int64_t arrow);
  void args(const Args& args);
  void text(std::string_view text);
  void close_event();
  void flush();

  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace tutti
