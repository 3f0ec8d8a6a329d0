#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// A regular file, open for reading: how every file is opened that others may have put there. Never waits: a
// pipe, a device or a folder in its place is a problem.
class RegularFile {
 public:
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;

  // "" if the file is open, else why not: "No such file or directory", "is a pipe, and no file".
  const std::string& problem() const { return problem_; }
  int descriptor() const { return descriptor_; }
  uint64_t size() const { return size_; }  // when it was opened
  std::string text() const;                // of an open file, to its end; throws OperatingError

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
  std::string problem_;
};

// The whole text of a regular file. Throws OperatingError with the path.
std::string text_of_file(const std::string& path);

// "is a pipe, and no file", by st_mode of <sys/stat.h>; "" for a regular file.
std::string_view no_file(uint32_t mode);

}  // namespace tutti
