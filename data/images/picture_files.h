#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// Files of pictures, by their paths below a folder, or by absolute paths.
class PictureFiles {
 public:
  explicit PictureFiles(std::string folder = "") : folder_(std::move(folder)) {}

  void add(const std::string& path);
  int64_t size() const { return std::ssize(ends_); }
  std::string path(int64_t index) const;  // as added
  std::string file(int64_t index) const;  // with the folder
  // The file's bytes, in `buffer`. Throws UserError without the file's name.
  std::span<const std::byte> read(int64_t index, std::vector<std::byte>& buffer) const;
  // Of the paths, and the sizes of a few files: to look at a million would take minutes.
  uint64_t digest() const;

 private:
  std::string folder_;
  std::string paths_;  // one behind the other: of a million files, 45 MB
  std::vector<std::size_t> ends_;
};

// `path` below `folder`, unless the path is absolute.
std::string picture_file(const std::string& folder, const std::string& path);

}  // namespace tutti
