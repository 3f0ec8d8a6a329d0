#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/mapped_file.h"

namespace tutti {

// A whole file for reading: a gzip file is uncompressed into memory, any other file is mapped. Throws
// UserError with file and byte if the file cannot be read, or is a damaged or truncated gzip file.
class GzipFile {
 public:
  static constexpr std::size_t kHeadBytes = std::size_t{1} << 16;
  // The most bytes that the reader takes from a file that begins with these kHeadBytes, or fewer.
  using MostBytes = std::function<uint64_t(std::span<const std::byte> head)>;

  // Of a compressed file only the head, or at most the limit and one byte, is uncompressed: a small file may
  // claim any size.
  GzipFile(const std::string& path, const MostBytes& most_bytes);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const;
  bool is_cut() const { return is_cut_; }  // there are more bytes, that were not uncompressed

 private:
  std::string path_;
  std::optional<MappedFile> map_;
  std::vector<std::byte> uncompressed_;
  bool is_cut_ = false;
};

// `path`, or `path`.gz if only that exists.
std::string plain_or_gzip(const std::string& path);

}  // namespace tutti
