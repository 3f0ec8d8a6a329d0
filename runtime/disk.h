#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// A file open for writing. Every call throws OperatingError with the path and errno's text.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Large writes of whole pages, from whole pages, bypass the system's cache where the file system can.
  virtual void write_at(uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void append(std::span<const std::byte> bytes) = 0;  // overwrites the bytes of a failed append
  virtual void sync() = 0;                                    // flushes to the device
  virtual void close() = 0;
};

// An exclusive lock, held until the object is destroyed or its process ends in any way.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
  // False on file systems without locks, where a lock keeps no process out.
  virtual bool excludes() const = 0;
};

enum class LockState { kFree, kHeld, kUnknown };  // unknown: on file systems without locks

// The interface to the file system for all persistent data, so that the simulator can tear and lose writes.
class Disk {
 public:
  virtual ~Disk() = default;
  // Creates or truncates the file if `truncate`, else opens an existing file. Not through a link.
  virtual std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) = 0;
  virtual std::vector<std::byte> read(const std::string& path) const = 0;
  // Fills `to` with the bytes of the file from `offset` on.
  virtual void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const = 0;
  std::vector<std::byte> read_range(const std::string& path, uint64_t offset, uint64_t bytes) const;
  // The whole text of a file of at most so many bytes.
  std::string read_text(const std::string& path, uint64_t most_bytes) const;
  virtual uint64_t size(const std::string& path) const = 0;
  virtual bool exists(const std::string& path) const = 0;
  // True if a file may be renamed to this path: the path is a regular file or does not exist.
  virtual bool replaceable(const std::string&) const { return true; }
  virtual bool is_link(const std::string&) const { return false; }  // whatever the link leads to
  // Sorted names; empty if the folder does not exist.
  virtual std::vector<std::string> list(const std::string& folder) const = 0;
  virtual void make_folders(const std::string& path) = 0;  // durable, with all parents
  // A file takes the mode of the replaced file.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove_all(const std::string& path) = 0;
  // Replaces `link` atomically. A folder of this name (from a copy that followed links) becomes `link`-aside.
  virtual void symlink(const std::string& target, const std::string& link) = 0;
  virtual void sync_folder(const std::string& path) = 0;
  // Locks the file at `path` and creates it if needed, not through a link. Null if this or another process
  // holds the lock. The text `holder` is written into the file.
  virtual std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) = 0;
  // The state of the lock; a file that does not exist is free. Writes nothing.
  virtual LockState lock_state(const std::string&) const { return LockState::kUnknown; }
  // Distinguishes a file or folder from a later file at the same path; 0 if the path does not exist.
  virtual uint64_t identity(const std::string&) const { return 1; }
};

// `stem` + `extension`, or the first of stem-2, stem-3, ... + `extension` that does not exist yet.
std::string unused_path(const Disk& disk, const std::string& stem, const std::string& extension = "");

// Bytes of the file behind `offset`, such as a failed write leaves; 0 if the size is unknown.
uint64_t bytes_behind(const Disk& disk, const std::string& path, uint64_t offset);

class PosixDisk : public Disk {
 public:
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override;
  std::vector<std::byte> read(const std::string& path) const override;
  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override;
  uint64_t size(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool replaceable(const std::string& path) const override;
  bool is_link(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void make_folders(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove_all(const std::string& path) override;
  void symlink(const std::string& target, const std::string& link) override;
  void sync_folder(const std::string& path) override;
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) override;
  LockState lock_state(const std::string& path) const override;
  uint64_t identity(const std::string& path) const override;
};

}  // namespace tutti
