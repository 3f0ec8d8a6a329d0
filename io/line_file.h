#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/disk.h"
#include "runtime/log.h"

namespace tutti {

// A text file with a line or more for each step. If the process is killed, at most the last line is torn. A
// resumed run removes the lines of repeated steps. After opening, disk errors do not throw: up to 1 MiB is
// buffered and written later; more lines are dropped and counted.
class LineFile {
 public:
  using StepOf = std::function<int64_t(const std::string& line)>;  // -1: torn, or another kind of line

  LineFile(Disk& disk, std::string path, StepOf step_of, Warn warn);

  // Opens the file, and keeps and returns its lines up to `last_step`. Warns of unreadable lines other than a
  // torn last line. Throws OperatingError if the path is no regular file.
  std::vector<std::string> resume(int64_t last_step);
  // Begins a new file and renames an earlier file: "metrics.earlier.jsonl". Throws as `resume`.
  void begin();

  // `line` has no line break at its end.
  void append(const std::string& line);
  void flush(bool sync = false);  // `sync`: makes the lines and the file's name durable
  // Flushes for the last time, and warns of lines that could not be written.
  void finish();

  const std::string& path() const { return path_; }
  bool empty() const { return empty_; }  // no line was kept or appended

 private:
  std::vector<std::string> lines_until(int64_t last_step) const;
  void require_replaceable() const;
  void set_aside();
  void open();
  void sync();
  int64_t unwritten_lines() const;
  void warn_dropped();

  Disk& disk_;
  std::string path_;
  StepOf step_of_;
  Warn warn_;
  std::unique_ptr<WritableFile> file_;
  std::optional<std::string> beginning_;  // kept lines that are not written yet
  bool moves_old_aside_ = false;          // `open` must rename an earlier file
  uint64_t written_ = 0;                  // bytes of the file
  std::string unwritten_;
  bool name_synced_ = false;  // the file's name is durable
  bool empty_ = true;
  bool broken_ = false;  // a write failed, and a warning was given
  int64_t dropped_ = 0;  // lines
};

}  // namespace tutti
