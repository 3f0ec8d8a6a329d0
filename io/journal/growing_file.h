#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// A new file that grows at its end and is written through a mapping: what stands in it survives a kill -9.
// Disk space is taken a stretch ahead, so that a full disk is an error here, not a SIGBUS where it is
// written. Nothing throws: a file that cannot grow must not end a run. One thread at a time.
class GrowingFile {
 public:
  static constexpr uint64_t kStretchBytes = uint64_t{1} << 20;

  // Whatever had the path before keeps its contents for those who have it open.
  explicit GrowingFile(const std::string& path);
  ~GrowingFile();  // cuts the file to size()
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Where to write so many bytes, which are 0 until then, behind size(); valid until the next call. Null once
  // there was no room, and from then on for all that the last stretch does not hold.
  uint8_t* room(uint64_t bytes) {
    const bool fits = size_ + bytes <= window_end_;
    return fits || extend(bytes) ? window_ + (size_ - window_begin_) : nullptr;
  }
  void advance(uint64_t bytes) { size_ += bytes; }

  uint64_t size() const { return size_; }
  int error() const { return error_; }  // an errno, 0 while there was room

 private:
  bool extend(uint64_t bytes);
  int reserve(uint64_t end);

  int descriptor_ = -1;
  int error_ = 0;
  uint64_t size_ = 0;
  uint8_t* window_ = nullptr;
  uint64_t window_begin_ = 0;
  uint64_t window_end_ = 0;  // of the file, too
};

}  // namespace tutti
