#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/mapped_file.h"

namespace tutti {

// A whole file for reading: what gzip compressed is uncompressed into memory, any other file is mapped.
// Throws UserError with file and byte if the file cannot be read, or is a damaged or truncated gzip file.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const;

 private:
  std::string path_;
  std::optional<MappedFile> map_;
  std::vector<std::byte> uncompressed_;
};

// `path`, or `path`.gz if only that exists.
std::string plain_or_gzip(const std::string& path);

}  // namespace tutti
