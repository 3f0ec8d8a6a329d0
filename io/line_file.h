#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/disk.h"

namespace tutti {

// A text file that a run appends whole lines to, each of a step. Whenever the process is killed it holds
// whole lines in order, and at most the last one is torn; a run that goes on cuts off the lines of steps that
// it does again. Once it is open it never throws for the disk: what cannot be written is kept, up to 1 MiB,
// and tried again; what there is no room for is dropped and counted.
class LineFile {
 public:
  using StepOf = std::function<int64_t(const std::string& line)>;  // -1: torn, or not a line of this kind
  using Warn = std::function<void(const std::string& what)>;

  LineFile(Disk& disk, std::string path, StepOf step_of, Warn warn);

  // Throws OperatingError where the path has a folder, a pipe or a device: those stay as they are.
  // Keeps what the file holds up to `last_step`; `see` is called with each line that stays. A warning counts
  // the lines that cannot be read, but for a torn last one.
  void resume(int64_t last_step, const std::function<void(const std::string&)>& see = nullptr);
  // Begins it anew; an earlier one stays beside it: "metrics.earlier.jsonl". What of this, or of resuming,
  // cannot be written is tried again too.
  void begin();

  // `line` has no line break at its end.
  void append(const std::string& line);
  void flush(bool sync = false);  // `sync`: to the device, the file's name too
  // Flushes for the last time, and tells how many lines there was no room for.
  void finish();

  const std::string& path() const { return path_; }
  bool empty() const { return empty_; }  // no line is kept, none was appended

 private:
  std::string lines_until(int64_t last_step, const std::function<void(const std::string&)>& see);
  void require_replaceable() const;
  void set_aside();
  void open();
  void sync();
  int64_t lines_left_over() const;
  void tell_dropped();

  Disk& disk_;
  std::string path_;
  StepOf step_of_;
  Warn warn_;
  std::unique_ptr<WritableFile> file_;
  std::optional<std::string> beginning_;  // of the file, while that is not written yet
  bool sets_aside_ = false;               // an earlier one, before that
  uint64_t written_ = 0;                  // bytes of the file
  std::string unwritten_;
  bool named_ = false;  // on the device
  bool empty_ = true;
  bool broken_ = false;  // it could not be written; said once
  int64_t dropped_ = 0;  // lines
};

}  // namespace tutti
