#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {

// A disk with room for a number of bytes; a write that does not fit is cut short, as by the system.
class SmallDisk final : public PosixDisk {
 public:
  explicit SmallDisk(std::size_t room) : room(room) {}
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override;

  std::size_t room;
};

class SmallFile final : public WritableFile {
 public:
  SmallFile(std::unique_ptr<WritableFile> file, uint64_t end, std::size_t& room)
      : file_(std::move(file)), end_(end), room_(room) {}
  void append(std::span<const std::byte> bytes) override {
    file_->write_at(end_, bytes.first(std::min(bytes.size(), room_)));
    if (bytes.size() > room_) throw OperatingError("No space left on device");
    end_ += bytes.size();
    room_ -= bytes.size();
  }
  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    file_->write_at(offset, bytes);
  }
  void sync() override {}
  void close() override { file_->close(); }

 private:
  std::unique_ptr<WritableFile> file_;
  uint64_t end_;
  std::size_t& room_;
};

inline std::unique_ptr<WritableFile> SmallDisk::open(const std::string& path, bool truncate) {
  auto file = PosixDisk::open(path, truncate);
  const uint64_t end = size(path);
  return std::make_unique<SmallFile>(std::move(file), end, room);
}

}  // namespace tutti
