#include "sim/environment/dry_disk.h"

#include <algorithm>
#include <set>

#include "runtime/error.h"

namespace tutti {
namespace {

bool is_inside(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

class NoLock final : public DiskLock {
 public:
  bool excludes() const override { return true; }
};

}  // namespace

class DryDisk::File final : public WritableFile {
 public:
  explicit File(std::shared_ptr<Bytes> bytes) : bytes_(std::move(bytes)) {}

  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    if (bytes_->size() < offset + bytes.size()) bytes_->resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_->begin() + static_cast<int64_t>(offset));
  }
  void append(std::span<const std::byte> bytes) override { write_at(bytes_->size(), bytes); }
  void sync() override {}
  void close() override {}

 private:
  std::shared_ptr<Bytes> bytes_;
};

std::unique_ptr<WritableFile> DryDisk::open(const std::string& path, bool truncate) {
  auto bytes = std::make_shared<Bytes>(truncate ? Bytes() : read(path));
  files_[path] = bytes;
  return std::make_unique<File>(std::move(bytes));
}

// Null if the file is the real disk's.
const DryDisk::Bytes* DryDisk::find(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return nullptr;
  if (!found->second) throw OperatingError(path + ": cannot open: it was removed");
  return found->second.get();
}

std::vector<std::byte> DryDisk::read(const std::string& path) const {
  const Bytes* bytes = find(path);
  return bytes ? *bytes : below_.read(path);
}

uint64_t DryDisk::size(const std::string& path) const {
  const Bytes* bytes = find(path);
  return bytes ? bytes->size() : below_.size(path);
}

void DryDisk::read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const {
  const Bytes* whole = find(path);
  if (!whole) return below_.read_into(path, offset, to);
  if (offset > whole->size() || to.size() > whole->size() - offset)
    throw OperatingError(path + ": cannot read");
  std::copy_n(whole->begin() + static_cast<int64_t>(offset), to.size(), to.begin());
}

bool DryDisk::exists(const std::string& path) const {
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second != nullptr;
  const bool folder = std::any_of(files_.begin(), files_.end(), [&](const auto& file) {
    return file.second && is_inside(file.first, path);
  });
  return folder || below_.exists(path);
}

std::vector<std::string> DryDisk::list(const std::string& folder) const {
  std::set<std::string> names;
  for (const auto& name : below_.list(folder))
    if (exists(folder + '/' + name)) names.insert(name);
  for (const auto& [path, bytes] : files_) {
    if (!bytes || !is_inside(path, folder)) continue;
    const std::string rest = path.substr(folder.size() + 1);
    names.insert(rest.substr(0, rest.find('/')));
  }
  return {names.begin(), names.end()};
}

void DryDisk::rename(const std::string& from, const std::string& to) {
  auto files = files_;
  for (const auto& [path, bytes] : files) {
    if (!bytes || (path != from && !is_inside(path, from))) continue;
    files_[to + path.substr(from.size())] = bytes;
    files_[path] = nullptr;
  }
}

void DryDisk::remove_all(const std::string& path) {
  for (auto& [file, bytes] : files_)
    if (file == path || is_inside(file, path)) bytes = nullptr;
  files_[path] = nullptr;
}

void DryDisk::symlink(const std::string& target, const std::string& link) {
  const auto* bytes = reinterpret_cast<const std::byte*>(target.data());
  files_[link] = std::make_shared<Bytes>(bytes, bytes + target.size());
}

std::unique_ptr<DiskLock> DryDisk::lock(const std::string&, const std::string&) {
  return std::make_unique<NoLock>();
}

}  // namespace tutti
