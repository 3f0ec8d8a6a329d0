#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// Another disk, of which a test changes something.
class DiskBelow : public Disk {
 public:
  explicit DiskBelow(std::unique_ptr<Disk> below) : below_(std::move(below)) {}
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    return below_->open(path, truncate);
  }
  std::vector<std::byte> read(const std::string& path) const override { return below_->read(path); }
  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override {
    below_->read_into(path, offset, to);
  }
  uint64_t size(const std::string& path) const override { return below_->size(path); }
  bool exists(const std::string& path) const override { return below_->exists(path); }
  bool replaceable(const std::string& path) const override { return below_->replaceable(path); }
  bool is_link(const std::string& path) const override { return below_->is_link(path); }
  std::vector<std::string> list(const std::string& folder) const override { return below_->list(folder); }
  void make_folders(const std::string& path) override { below_->make_folders(path); }
  void rename(const std::string& from, const std::string& to) override { below_->rename(from, to); }
  void remove_all(const std::string& path) override { below_->remove_all(path); }
  void symlink(const std::string& target, const std::string& link) override { below_->symlink(target, link); }
  void sync_folder(const std::string& path) override { below_->sync_folder(path); }
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) override {
    return below_->lock(path, holder);
  }

 protected:
  std::unique_ptr<Disk> below_;
};

}  // namespace tutti
