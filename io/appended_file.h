#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/disk.h"

namespace tutti {

// A file that grows by records. Records are kept until `flush`, and where the disk is full: up to 1 MiB, or
// one larger record. More records are dropped.
class AppendedFile {
 public:
  AppendedFile(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  void begin();                 // a new file
  void resume(uint64_t bytes);  // the file that is there, of so many bytes

  // False, and the record counts as dropped, if there is no room for so many bytes.
  bool has_room(std::size_t bytes);
  void add(std::string_view bytes) { unwritten_ += bytes; }
  // `sync`: makes the records and the file's name durable. Throws OperatingError; no record is lost then.
  void flush(bool sync);

  const std::string& path() const { return path_; }
  uint64_t end() const { return written_ + unwritten_.size(); }  // where the next record begins
  const std::string& unwritten() const { return unwritten_; }
  uint64_t half_written() const;  // bytes of `unwritten` that a failed append has written
  int64_t dropped() const { return dropped_; }

 private:
  Disk& disk_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  bool name_synced_ = false;  // the file's name is durable
  uint64_t written_ = 0;      // bytes
  std::string unwritten_;
  int64_t dropped_ = 0;
};

}  // namespace tutti
