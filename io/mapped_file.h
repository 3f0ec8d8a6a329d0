#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tutti {

// A whole file, mapped for reading. Throws UserError with the file if it cannot be opened. If the file is
// truncated while it is read, the process ends with exit code 1 and an error, printed once for all ranks.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tutti
