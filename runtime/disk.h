#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// A file that is open for writing. Every call throws OperatingError naming the path and errno's text.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void write_at(uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void append(std::span<const std::byte> bytes) = 0;  // what a failed one wrote is written over
  virtual void sync() = 0;                                    // to the device
  virtual void close() = 0;
};

// What keeps other processes out of something until it is destroyed, or its process ends, however it ends.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
  // False on file systems that know no locks: nobody is kept out.
  virtual bool excludes() const = 0;
};

// The one way to the file system for whatever is persistent, so that the simulator can tear and lose writes.
class Disk {
 public:
  virtual ~Disk() = default;
  // Creates or truncates when `truncate`, else opens the existing file.
  virtual std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) = 0;
  virtual std::vector<std::byte> read(const std::string& path) const = 0;
  virtual std::vector<std::byte> read_range(const std::string& path, uint64_t offset,
                                            uint64_t bytes) const = 0;
  virtual uint64_t size(const std::string& path) const = 0;
  virtual bool exists(const std::string& path) const = 0;
  // Whether a file may be renamed to this path: it has a file, or nothing, and no folder, pipe or device.
  virtual bool replaceable(const std::string&) const { return true; }
  virtual std::vector<std::string> list(
      const std::string& folder) const = 0;                // names, sorted; empty when absent
  virtual void make_folders(const std::string& path) = 0;  // their names are durable, too
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove_all(const std::string& path) = 0;
  // Replaces `link` atomically; a folder in its place (a copy that followed links) becomes `link`-aside.
  virtual void symlink(const std::string& target, const std::string& link) = 0;
  virtual void sync_folder(const std::string& path) = 0;
  // Locks the file at `path`, which is made if need be; null when another process, or another lock of this
  // one, holds it. The file then says who, in the holder's words.
  virtual std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) = 0;
};

// `stem` + `extension`, or the first of stem-2, stem-3, ... + `extension` that does not exist yet.
std::string unused_path(const Disk& disk, const std::string& stem, const std::string& extension = "");

// Bytes that the file has behind `offset`, as a write leaves them that a full disk cut short; 0 where nobody
// can tell.
uint64_t bytes_behind(const Disk& disk, const std::string& path, uint64_t offset);

class PosixDisk : public Disk {
 public:
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override;
  std::vector<std::byte> read(const std::string& path) const override;
  std::vector<std::byte> read_range(const std::string& path, uint64_t offset, uint64_t bytes) const override;
  uint64_t size(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool replaceable(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void make_folders(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove_all(const std::string& path) override;
  void symlink(const std::string& target, const std::string& link) override;
  void sync_folder(const std::string& path) override;
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) override;
};

}  // namespace tutti
