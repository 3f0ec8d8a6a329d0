#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// TensorBoard's event file: records framed as TensorFlow's (length, masked CRC-32C of it, bytes, their masked
// CRC-32C), each a protobuf of tensorflow/core/util/event.proto. Whenever the process is killed it holds
// whole records, and at most the last one is torn, which TensorBoard leaves out.
// What is added is written by `flush`; what a full disk leaves no room for is kept, up to 1 MiB, or one
// record that is larger, then dropped.
class EventFile {
 public:
  EventFile(Disk& disk, const std::string& path, double wall_time_s);

  // Records that are among these, but for their times, are left out from here on.
  void leave_out(std::set<std::string> known) { known_ = std::move(known); }
  // What earlier files say of `step` and later ones is aborted.
  void restart(int64_t step, double wall_time_s);
  void scalars(const std::vector<std::pair<std::string, double>>& values, int64_t step, double wall_time_s);
  // Shown by TensorBoard's text plugin, as Markdown.
  void text(const std::string& tag, const std::string& markdown, int64_t step, double wall_time_s);
  // A PNG file of so many pixels, of 1 channel or 3.
  struct Image {
    int64_t height = 0, width = 0, channels = 0;
    std::string png;
  };
  void image(const std::string& tag, const Image& image, int64_t step, double wall_time_s);

  // Throws OperatingError; nothing is lost by it.
  void flush(bool sync);
  const std::string& path() const { return path_; }
  int64_t dropped() const { return dropped_; }  // records
  int64_t lacking() const;                      // records: those, and what is not written yet

 private:
  void record(const std::string& event);

  Disk& disk_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  bool named_ = false;  // on the device
  std::set<std::string> known_;
  uint64_t written_ = 0;  // bytes
  std::string unwritten_;
  int64_t dropped_ = 0;
};

// What files that EventFile wrote, in their order, say of `step`: the records but for their times.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step);

// Of TensorFlow's framing; the CRC is Castagnoli's.
uint32_t masked_crc32c(const std::string& bytes);

}  // namespace tutti
