#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tutti {

// A regular file, open for reading: the only way to open a file that other programs may have written. Never
// waits: a pipe, a device or a folder in its place is a problem.
class RegularFile {
 public:
  // A file of more than `most_bytes` is a problem too.
  explicit RegularFile(const std::string& path, uint64_t most_bytes = UINT64_MAX);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;

  // "" if the file is open, else the reason: "No such file or directory", "is a pipe, and no file".
  const std::string& problem() const { return problem_; }
  int descriptor() const { return descriptor_; }
  uint64_t size() const { return size_; }  // when it was opened
  std::string text() const;                // of an open file, to its end; throws OperatingError
  // Reads on from the last read; fewer bytes than asked for are possible, 0 at the end; throws
  // OperatingError.
  std::size_t read(char* to, std::size_t bytes) const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
  std::string problem_;
};

// For recipes, results and other files that are read whole, from any source.
inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 24;

// The whole text of a regular file of at most so many bytes. Throws OperatingError with the path.
std::string text_of_file(const std::string& path, uint64_t most_bytes = UINT64_MAX);

// Calls visit(line) for each line of at most so many bytes, without its line break, in little memory. Longer
// lines and a last line without an end are left out; holes in the file are not read. Throws as text_of_file.
void for_each_line(const std::string& path, std::size_t most_bytes,
                   const std::function<void(std::string& line)>& visit);

// "has 17,000,000 bytes, and at most 16,777,216 are read"; "" if there are not too many.
std::string too_many_bytes(uint64_t bytes, uint64_t most_bytes);

// "is a pipe, and no file", by st_mode of <sys/stat.h>; "" for a regular file.
std::string_view no_file(uint32_t mode);

}  // namespace tutti
