#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/appended_file.h"
#include "runtime/disk.h"

namespace tutti {

// TensorBoard's event file: protobufs of tensorflow/core/util/event.proto in TensorFlow's record format
// (length, masked CRC-32C of the length, bytes, masked CRC-32C of the bytes). If the process is killed, at
// most the last record is torn, and TensorBoard ignores a torn record. Records are buffered until `flush`. If
// the disk is full, up to 1 MiB (or one larger record) is kept, and more records are dropped.
class EventFile {
 public:
  EventFile(Disk& disk, const std::string& path, double wall_time_s);

  // From now on skips records that are in `known` (records_of_step).
  void skip(std::set<std::string> known) { known_ = std::move(known); }
  // Invalidates the records of `step` and later steps in earlier files.
  void restart(int64_t step, double wall_time_s);
  void scalars(const std::vector<std::pair<std::string, double>>& values, int64_t step, double wall_time_s);
  // Shown by TensorBoard's text plugin, as Markdown.
  void text(const std::string& tag, const std::string& markdown, int64_t step, double wall_time_s);
  // A PNG file with 1 or 3 channels.
  struct Image {
    int64_t height = 0, width = 0, channels = 0;
    std::string png;
  };
  void image(const std::string& tag, const Image& image, int64_t step, double wall_time_s);

  // Throws OperatingError; no record is lost then.
  void flush(bool sync) { file_.flush(sync); }
  const std::string& path() const { return file_.path(); }
  int64_t dropped() const { return file_.dropped(); }  // records
  int64_t missing() const;                             // records dropped or not yet written

 private:
  void record(const std::string& event);

  AppendedFile file_;
  std::set<std::string> known_;
};

// The checksum of TensorFlow's record format; the CRC is Castagnoli's.
uint32_t masked_crc32c(const std::string& bytes);

// Reads files of EventFile, each up to its first torn record. `paths`: in the order of writing. Records that
// a later attempt has invalidated (EventFile::restart) are left out.

// The records of `step`, without their times.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step);

// An image or a text in a file.
struct ShownRecord {
  std::string tag;
  int64_t step = 0;
  bool is_image = false;  // a PNG; else Markdown
  std::string path;       // the file with its bytes, and their place
  uint64_t offset = 0, bytes = 0;
};
std::vector<ShownRecord> images_and_texts(const Disk& disk, const std::vector<std::string>& paths);

}  // namespace tutti
