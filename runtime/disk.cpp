#include "runtime/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/error.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  throw OperatingError({path}, std::string("cannot ") + action + ": " + std::strerror(error));
}

void check(const std::error_code& error, const std::string& path, const char* action) {
  if (error) throw OperatingError({path}, std::string("cannot ") + action + ": " + error.message());
}

template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// A file descriptor, closed by the destructor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(retry_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); })) {
    if (fd_ < 0 && errno == ELOOP && flags & O_NOFOLLOW)
      throw OperatingError({path}, "is a link, and nothing is written through links");
    if (fd_ < 0) fail(path, flags & O_CREAT ? "create" : "open", errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// For a file to be written: /dev/null is allowed.
uint64_t size_of(const Descriptor& file, const std::string& path) {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail(path, "stat", errno);
  if (const auto what = no_file(status.st_mode); !what.empty() && !S_ISCHR(status.st_mode))
    throw OperatingError({path}, std::string(what));
  return status.st_size;
}

void require_inside(const std::string& path, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (offset > size || bytes > size - offset)
    throw OperatingError({path}, "cannot read " + std::to_string(bytes) + " bytes at " +
                                     std::to_string(offset) + ": the file has " + std::to_string(size));
}

class PosixFile final : public WritableFile {
 public:
  PosixFile(const std::string& path, bool truncate)
      : path_(path),
        file_(path, O_RDWR | O_NOFOLLOW | (truncate ? O_CREAT | O_TRUNC : 0)),
        end_(size_of(file_, path)) {}

  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      bypass_cache(suits_bypassing(offset, bytes));
      const ssize_t written =
          retry_interrupted([&] { return ::pwrite(file_.get(), bytes.data(), bytes.size(), offset); });
      if (written < 0 && errno == EINVAL && bypasses_) {
        can_bypass_ = false;
        continue;
      }
      if (written < 0) fail(path_, "write", errno);
      bytes = bytes.subspan(written);
      offset += written;
    }
    end_ = std::max(end_, offset);
  }

  void append(std::span<const std::byte> bytes) override { write_at(end_, bytes); }

  void sync() override {
    if (retry_interrupted([&] { return ::fsync(file_.get()); }) != 0) fail(path_, "sync", errno);
  }

  void close() override {
    const int fd = file_.release();
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) fail(path_, "close", errno);
  }

 private:
  static constexpr uintptr_t kPage = 4096, kLeastBypassing = 1 << 20;

  bool suits_bypassing(uint64_t offset, std::span<const std::byte> bytes) const {
    const auto from = reinterpret_cast<uintptr_t>(bytes.data());
    return can_bypass_ && bytes.size() >= kLeastBypassing && (offset | from | bytes.size()) % kPage == 0;
  }

  void bypass_cache(bool bypass) {
    if (bypass == bypasses_) return;
    if (::fcntl(file_.get(), F_SETFL, bypass ? O_DIRECT : 0) == 0)
      bypasses_ = bypass;
    else if (bypass)
      can_bypass_ = false;
    else
      fail(path_, "write", errno);
  }

  std::string path_;
  Descriptor file_;
  uint64_t end_;
  bool can_bypass_ = true, bypasses_ = false;
};

class PosixLock final : public DiskLock {
 public:
  PosixLock(std::unique_ptr<Descriptor> file, bool excludes) : file_(std::move(file)), excludes_(excludes) {}
  bool excludes() const override { return excludes_; }

 private:
  std::unique_ptr<Descriptor> file_;
  bool excludes_;
};

}  // namespace

std::string unused_path(const Disk& disk, const std::string& stem, const std::string& extension) {
  std::string path = stem + extension;
  for (int n = 2; disk.exists(path); ++n) path = stem + "-" + std::to_string(n) + extension;
  return path;
}

uint64_t bytes_behind(const Disk& disk, const std::string& path, uint64_t offset) try {
  return std::max(disk.size(path), offset) - offset;
} catch (const OperatingError&) {
  return 0;
}

// Before memory is taken: the number of bytes may come from a damaged file.
std::vector<std::byte> Disk::read_range(const std::string& path, uint64_t offset, uint64_t bytes) const {
  require_inside(path, offset, bytes, size(path));
  std::vector<std::byte> out(bytes);
  read_into(path, offset, out);
  return out;
}

std::string Disk::read_text(const std::string& path, uint64_t most_bytes) const {
  if (const std::string problem = too_many_bytes(size(path), most_bytes); !problem.empty())
    throw OperatingError({path}, "cannot be read: " + problem);
  const std::vector<std::byte> bytes = read(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<WritableFile> PosixDisk::open(const std::string& path, bool truncate) {
  return std::make_unique<PosixFile>(path, truncate);
}

std::vector<std::byte> PosixDisk::read(const std::string& path) const {
  return read_range(path, 0, size(path));
}

void PosixDisk::read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const {
  const RegularFile file(path);
  if (!file.problem().empty()) throw OperatingError({path}, "cannot open: " + file.problem());
  require_inside(path, offset, to.size(), file.size());
  for (uint64_t done = 0; done < to.size();) {
    const ssize_t got = retry_interrupted(
        [&] { return ::pread(file.descriptor(), to.data() + done, to.size() - done, offset + done); });
    if (got < 0) fail(path, "read", errno);
    if (got == 0) throw OperatingError({path}, "cannot read: the file shrank meanwhile");
    done += got;
  }
}

uint64_t PosixDisk::size(const std::string& path) const {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail(path, "stat", errno);
  return status.st_size;
}

bool PosixDisk::exists(const std::string& path) const {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

bool PosixDisk::replaceable(const std::string& path) const {
  struct stat status;
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

bool PosixDisk::is_link(const std::string& path) const {
  std::error_code unknown;
  return fs::is_symlink(path, unknown);
}

std::vector<std::string> PosixDisk::list(const std::string& folder) const {
  if (!exists(folder)) return {};
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  check(error, folder, "list");
  std::sort(names.begin(), names.end());
  return names;
}

void PosixDisk::make_folders(const std::string& path) {
  fs::path made;
  for (const auto& name : fs::absolute(path)) {
    const fs::path parent = std::exchange(made, made / name);
    std::error_code error;
    const bool is_new = fs::create_directory(made, error);
    std::error_code unknown;
    if (error && !fs::is_directory(made, unknown)) check(error, path, "create");
    if (is_new) sync_folder(parent);
  }
}

void PosixDisk::rename(const std::string& from, const std::string& to) {
  std::error_code unknown;
  const fs::file_status replaced = fs::symlink_status(to, unknown);
  if (fs::is_regular_file(replaced) && fs::is_regular_file(fs::symlink_status(from, unknown)))
    fs::permissions(from, replaced.permissions(), unknown);
  if (::rename(from.c_str(), to.c_str()) != 0) fail(from, ("rename to " + to).c_str(), errno);
}

void PosixDisk::remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  check(error, path, "remove");
}

void PosixDisk::symlink(const std::string& target, const std::string& link) {
  const std::string fresh = link + ".new";
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0) fail(fresh, "link", errno);
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(link, error))) rename(link, unused_path(*this, link + "-aside"));
  rename(fresh, link);
}

void PosixDisk::sync_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (retry_interrupted([&] { return ::fsync(folder.get()); }) != 0) fail(path, "sync", errno);
}

std::unique_ptr<DiskLock> PosixDisk::lock(const std::string& path, const std::string& holder) {
  auto file = std::make_unique<Descriptor>(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  size_of(*file, path);
  const bool excludes = retry_interrupted([&] { return ::flock(file->get(), LOCK_EX | LOCK_NB); }) == 0;
  if (!excludes && errno == EWOULDBLOCK) return nullptr;
  if (!excludes && errno != ENOSYS && errno != ENOTSUP && errno != ENOLCK) fail(path, "lock", errno);
  if (::ftruncate(file->get(), 0) != 0 || ::pwrite(file->get(), holder.data(), holder.size(), 0) < 0)
    fail(path, "write", errno);
  return std::make_unique<PosixLock>(std::move(file), excludes);
}

// A shared lock, for a moment: others that look are not in the way of each other.
LockState PosixDisk::lock_state(const std::string& path) const {
  struct stat facts;
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return LockState::kFree;
    fail(path, "stat", errno);
  }
  if (S_ISLNK(facts.st_mode)) throw OperatingError({path}, "is a link, and no lock");
  const RegularFile file(path);
  if (!file.problem().empty()) throw OperatingError({path}, "cannot open: " + file.problem());
  if (retry_interrupted([&] { return ::flock(file.descriptor(), LOCK_SH | LOCK_NB); }) == 0)
    return LockState::kFree;
  return errno == EWOULDBLOCK ? LockState::kHeld : LockState::kUnknown;
}

uint64_t PosixDisk::identity(const std::string& path) const {
  struct stat facts;
  if (::stat(path.c_str(), &facts) == 0) return facts.st_ino;
  if (errno == ENOENT || errno == ENOTDIR || errno == ESTALE) return 0;
  fail(path, "stat", errno);
}

}  // namespace tutti
