#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/mapped_file.h"

namespace tutti {

// A new file that grows at its end; appended bytes survive a kill -9. It is mapped, so to append is to copy.
// Disk space is reserved in advance, so a last record still fits on a full disk. Nothing throws, since no
// error may end a run. Not thread-safe.
class GrowingFile {
 public:
  static constexpr uint64_t kReservedBytes = uint64_t{1} << 20;

  // Unlinks an older file at the path; processes that have it open keep its contents.
  explicit GrowingFile(const std::string& path);
  ~GrowingFile();  // cuts off the reserved space
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Writes at size() if `spare` more bytes fit after `bytes`. False if they do not; later calls then succeed
  // only within the space that is already reserved.
  bool append(std::span<const uint8_t> bytes, uint64_t spare);

  uint64_t size() const { return size_; }
  // Why bytes are missing; "" if none are. Checks the file's size: another process may have truncated it.
  std::string error();

 private:
  bool extend(uint64_t bytes);
  int reserve(uint64_t end);
  bool truncated();

  int descriptor_ = -1;
  int error_ = 0;  // an errno; 0 = none
  bool truncated_ = false;
  uint64_t size_ = 0;
  uint64_t reserved_ = 0;                     // the file's size on disk in bytes
  std::unique_ptr<WritableMapping> mapping_;  // of bytes mapped_from_ to reserved_
  uint64_t mapped_from_ = 0;
};

}  // namespace tutti
