#include "sim/environment/sim_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& action, int error) {
  throw OperatingError(path + ": cannot " + action + ": " + std::strerror(error));
}

bool is_folder(const DiskNodePtr& node) { return node && node->kind == DiskNode::Kind::kFolder; }

// The bytes that a lost or torn write stores.
std::span<const std::byte> stored_part(SimDisk::WriteOutcome outcome, std::span<const std::byte> bytes) {
  return bytes.first(outcome == SimDisk::WriteOutcome::kTorn ? bytes.size() / 2 : 0);
}

bool any_damaged(const DiskNode& node) {
  return node.damaged || std::any_of(node.children.begin(), node.children.end(),
                                     [](const auto& child) { return any_damaged(*child.second); });
}

}  // namespace

class SimDisk::Lock final : public DiskLock {
 public:
  Lock(SimDisk& disk, DiskNodePtr file, uint64_t number)
      : disk_(disk), file_(std::move(file)), number_(number) {}
  ~Lock() override {
    const auto lock = disk_.locks_.find(file_.get());
    if (lock != disk_.locks_.end() && lock->second.second == number_) disk_.locks_.erase(lock);
  }
  bool excludes() const override { return true; }

 private:
  SimDisk& disk_;
  DiskNodePtr file_;
  uint64_t number_;
};

class SimDisk::View final : public Disk {
 public:
  View(SimDisk& disk, int rank, Hook hook) : disk_(disk), rank_(rank), hook_(std::move(hook)) {}

  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override;

  std::vector<std::byte> read(const std::string& path) const override {
    return read_range(path, 0, size(path));
  }

  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override {
    if (hook_) hook_({.rank = rank_, .path = path, .reads = true});
    const DiskNodePtr node = disk_.tree_.find(path);
    if (is_folder(node)) fail(path, "read", EISDIR);
    if (const std::string* real = real_path(node, path)) return real_.read_into(*real, offset, to);
    const auto& all = node->bytes.get();
    if (offset > all.size() || to.size() > all.size() - offset)
      throw OperatingError(path + ": cannot read " + std::to_string(to.size()) + " bytes at " +
                           std::to_string(offset) + ": it has " + std::to_string(all.size()));
    std::copy_n(all.begin() + static_cast<int64_t>(offset), to.size(), to.begin());
  }

  uint64_t size(const std::string& path) const override {
    const DiskNodePtr node = disk_.tree_.find(path);
    const std::string* real = real_path(node, path);
    return real ? real_.size(*real) : node->bytes.get().size();
  }

  bool exists(const std::string& path) const override {
    return disk_.tree_.find(path) != nullptr || (!disk_.mirrors(path) && real_.exists(path));
  }

  bool replaceable(const std::string& path) const override {
    const DiskNodePtr node = disk_.tree_.find(path);
    return node ? node->kind == DiskNode::Kind::kFile : disk_.mirrors(path) || real_.replaceable(path);
  }

  bool is_link(const std::string& path) const override {
    const DiskNodePtr node = disk_.tree_.find(path, /*follow=*/false);
    return node ? node->kind == DiskNode::Kind::kLink : !disk_.mirrors(path) && real_.is_link(path);
  }

  std::vector<std::string> list(const std::string& folder) const override {
    const DiskNodePtr node = disk_.tree_.find(folder);
    std::vector<std::string> names;
    if (!node) return disk_.mirrors(folder) ? names : real_.list(folder);
    for (const auto& [name, child] : node->children) names.push_back(name);
    return names;
  }

  void make_folders(const std::string& path) override {
    call(path);
    disk_.tree_.make_folders(path);
  }

  void rename(const std::string& from, const std::string& to) override {
    call(from);
    const DiskNodePtr node = disk_.tree_.find(from, /*follow=*/false);
    if (!node || !disk_.tree_.parent_of(to)) fail(from, "rename to " + to, ENOENT);
    const DiskNodePtr replaced = disk_.tree_.find(to, /*follow=*/false);
    if (is_folder(replaced) && !replaced->children.empty()) fail(from, "rename to " + to, ENOTEMPTY);
    disk_.tree_.rename(from, to);
  }

  // Removes one name after the other, like the real disk: a process may die in between.
  void remove_all(const std::string& path) override {
    const DiskNodePtr node = disk_.tree_.find(path, /*follow=*/false);
    if (!node) return;
    for (const auto& name : node->kind == DiskNode::Kind::kFolder ? list(path) : std::vector<std::string>())
      remove_all(path + "/" + name);
    call(path);
    if (disk_.tree_.find(path, /*follow=*/false)) disk_.tree_.unlink(path);
  }

  void symlink(const std::string& target, const std::string& link) override {
    call(link);
    if (!disk_.tree_.parent_of(link)) fail(link, "link", ENOENT);
    const auto node = std::make_shared<DiskNode>(DiskNode::Kind::kLink);
    node->target = target;
    disk_.tree_.link(link, node);
  }

  void sync_folder(const std::string& path) override {
    call(path);
    const DiskNodePtr node = disk_.tree_.find(path);
    if (!node) fail(path, "open", ENOENT);
    disk_.tree_.sync_names(node);
  }

  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder) override {
    call(path);
    const DiskNodePtr file = node_to_write(path, /*make=*/true);
    if (disk_.locks_.count(file.get())) return nullptr;
    disk_.locks_[file.get()] = {rank_, ++disk_.lock_count_};
    DiskTree::truncate(*file);
    DiskTree::write(*file, 0, std::as_bytes(std::span(holder)));
    return std::make_unique<Lock>(disk_, file, disk_.lock_count_);
  }

  WriteOutcome call(const std::string& path, std::optional<std::span<const std::byte>> bytes = {}) const {
    return hook_ ? hook_({rank_, path, bytes}) : WriteOutcome::kDone;
  }

 private:
  // The file of the real disk that has the bytes of `path`, or null.
  const std::string* real_path(const DiskNodePtr& node, const std::string& path) const {
    if (!node && disk_.mirrors(path)) fail(path, "open", ENOENT);
    if (!node) return &path;
    return node->source.empty() ? nullptr : &node->source;
  }

  DiskNodePtr node_to_write(const std::string& path, bool make) {
    DiskNodePtr node = disk_.tree_.find(path, /*follow=*/false);
    if (node && node->kind == DiskNode::Kind::kLink)
      throw OperatingError({path}, "is a link, and nothing is written through links");
    if (is_folder(node)) fail(path, "open", EISDIR);
    if (node) return node;
    if (!make) fail(path, "open", ENOENT);
    if (!is_folder(disk_.tree_.parent_of(path))) fail(path, "create", ENOENT);
    node = std::make_shared<DiskNode>(DiskNode::Kind::kFile);
    disk_.tree_.link(path, node);
    return node;
  }

  SimDisk& disk_;
  int rank_;
  Hook hook_;
  PosixDisk real_;
};

class SimDisk::File final : public WritableFile {
 public:
  File(const View& view, std::string path, DiskNodePtr node)
      : view_(view), path_(std::move(path)), node_(std::move(node)), end_(node_->bytes.get().size()) {}

  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    const WriteOutcome outcome = view_.call(path_, bytes);
    if (outcome == WriteOutcome::kFull) DiskTree::write(*node_, offset, bytes.first(bytes.size() / 2));
    if (outcome == WriteOutcome::kFull) fail(path_, "write", ENOSPC);
    if (outcome == WriteOutcome::kFails) fail(path_, "write", EIO);
    if (changes_write(outcome, bytes)) {
      damage(offset, bytes.size(), stored_part(outcome, bytes));
    } else {
      DiskTree::write(*node_, offset, bytes);
    }
    end_ = std::max(end_, offset + bytes.size());
  }

  void append(std::span<const std::byte> bytes) override { write_at(end_, bytes); }

  void sync() override {
    view_.call(path_);
    DiskTree::sync(*node_);
  }

  void close() override {}

 private:
  // Writes zeros in place of bytes that are not stored, so the file has its full length.
  void damage(uint64_t offset, uint64_t bytes, std::span<const std::byte> stored) {
    std::vector<std::byte> result(bytes);
    std::copy(stored.begin(), stored.end(), result.begin());
    DiskTree::write(*node_, offset, result);
    node_->damaged = true;
  }

  const View& view_;
  std::string path_;
  DiskNodePtr node_;
  uint64_t end_;
};

std::unique_ptr<WritableFile> SimDisk::View::open(const std::string& path, bool truncate) {
  call(path);
  const DiskNodePtr node = node_to_write(path, truncate);
  if (truncate) {
    DiskTree::truncate(*node);
  } else if (!node->source.empty()) {
    node->bytes.change() = real_.read(std::exchange(node->source, ""));
    DiskTree::sync(*node);
  }
  return std::make_unique<File>(*this, path, node);
}

bool SimDisk::changes_write(WriteOutcome outcome, std::span<const std::byte> bytes) {
  if (outcome == WriteOutcome::kFull || outcome == WriteOutcome::kFails) return true;
  if (outcome == WriteOutcome::kDone) return false;
  const auto missing = bytes.subspan(stored_part(outcome, bytes).size());
  return std::any_of(missing.begin(), missing.end(), [](std::byte byte) { return byte != std::byte{}; });
}

void SimDisk::mirror(const std::string& folder) {
  mirrored_.push_back((std::filesystem::absolute(folder) / "").lexically_normal());
  add_real(folder);
}

void SimDisk::add_real(const std::string& folder) {
  const DiskNodePtr made = tree_.make_folders(folder);
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path();
    const auto node =
        std::make_shared<DiskNode>(entry.is_symlink() ? DiskNode::Kind::kLink : DiskNode::Kind::kFile);
    if (entry.is_symlink())
      node->target = std::filesystem::read_symlink(path);
    else if (entry.is_regular_file())
      node->source = std::filesystem::absolute(path);
    else if (entry.is_directory())
      add_real(path);
    if (!node->target.empty() || !node->source.empty()) tree_.link(path, node);
  }
  tree_.sync_names(made);
}

bool SimDisk::mirrors(const std::string& path) const {
  const std::string plain = tree_.behind_links(path);
  return std::ranges::any_of(mirrored_, [&](const auto& folder) { return plain.starts_with(folder); });
}

bool SimDisk::wrote(const std::string& path) const {
  const DiskNodePtr node = tree_.find(path);
  return node && node->kind == DiskNode::Kind::kFile && node->source.empty();
}

std::unique_ptr<Disk> SimDisk::view(int rank, Hook hook) {
  return std::make_unique<View>(*this, rank, std::move(hook));
}

void SimDisk::release_locks(int rank) {
  std::erase_if(locks_, [rank](const auto& lock) { return lock.second.first == rank; });
}

void SimDisk::lose_power(const RandomKey& draw) {
  locks_.clear();
  tree_.lose_power(draw);
}

std::unique_ptr<SimDisk> SimDisk::after_power_loss(const RandomKey& draw) const {
  auto disk = std::make_unique<SimDisk>();
  disk->tree_ = tree_.copy();
  disk->mirrored_ = mirrored_;
  disk->tree_.lose_power(draw);
  return disk;
}

bool SimDisk::damaged(const std::string& path) const {
  const DiskNodePtr node = tree_.find(path);
  return node && any_damaged(*node);
}

}  // namespace tutti
