#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// Reads the real disk and keeps all changes in memory. Folders need not exist.
class DryDisk final : public Disk {
 public:
  using Bytes = std::vector<std::byte>;

  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override;
  std::vector<std::byte> read(const std::string& path) const override;
  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override;
  uint64_t size(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool replaceable(const std::string& path) const override {
    return files_.contains(path) || below_.replaceable(path);
  }
  std::vector<std::string> list(const std::string& folder) const override;
  void make_folders(const std::string&) override {}
  void rename(const std::string& from, const std::string& to) override;
  void remove_all(const std::string& path) override;
  void symlink(const std::string& target, const std::string& link) override;
  void sync_folder(const std::string&) override {}
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) override;

  // True if the file at `path` is in memory.
  bool wrote(const std::string& path) const {
    const auto found = files_.find(path);
    return found != files_.end() && found->second;
  }

 private:
  class File;
  const Bytes* find(const std::string& path) const;

  PosixDisk below_;
  std::map<std::string, std::shared_ptr<Bytes>> files_;  // by path; null: removed
};

}  // namespace tutti
