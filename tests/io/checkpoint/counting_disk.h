#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// Notes what is read.
class CountingDisk final : public PosixDisk {
 public:
  struct Read {
    std::string path;
    uint64_t offset;
    uint64_t bytes;
  };

  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override {
    reads.push_back({path, offset, to.size()});
    PosixDisk::read_into(path, offset, to);
  }

  // Of files with this in their paths.
  uint64_t bytes_of(const std::string& path) const {
    uint64_t bytes = 0;
    for (const Read& read : reads)
      if (read.path.find(path) != std::string::npos) bytes += read.bytes;
    return bytes;
  }
  uint64_t largest() const {
    uint64_t bytes = 0;
    for (const Read& read : reads) bytes = std::max(bytes, read.bytes);
    return bytes;
  }

  mutable std::vector<Read> reads;
};

}  // namespace tutti
