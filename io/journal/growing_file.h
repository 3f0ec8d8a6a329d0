#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti {

// A new file that grows at its end: what was appended survives a kill -9. Disk space is taken a stretch
// ahead, so that there is room for last words on a full disk. Nothing throws: a file that cannot grow must
// not end a run. One thread at a time.
class GrowingFile {
 public:
  static constexpr uint64_t kStretchBytes = uint64_t{1} << 20;

  // Whatever had the path before keeps its contents for those who have it open.
  explicit GrowingFile(const std::string& path);
  ~GrowingFile();  // gives back the space behind size()
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Writes at size(), where `spare` more bytes have room behind. False where they have not, and from then on
  // for all that the last stretch does not hold.
  bool append(std::span<const uint8_t> bytes, uint64_t spare);

  uint64_t size() const { return size_; }
  // Why the file is not whole; "" while it is. Looks at the file: somebody else may have cut it short.
  std::string trouble();

 private:
  bool extend(uint64_t bytes);
  int reserve(uint64_t end);
  bool cut_short();
  bool abandon(int error);

  int descriptor_ = -1;
  int error_ = 0;  // an errno, 0 while all is well
  bool cut_short_ = false;
  uint64_t size_ = 0;
  uint64_t reserved_ = 0;  // bytes that the file has on disk
};

}  // namespace tutti
