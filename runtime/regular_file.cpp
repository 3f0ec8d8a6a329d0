#include "runtime/regular_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

RegularFile good_file(const std::string& path, uint64_t most_bytes = UINT64_MAX) {
  RegularFile file(path, most_bytes);
  if (!file.problem().empty()) throw OperatingError({path}, "cannot be read: " + file.problem());
  return file;
}

// What Git leaves in the place of a large file; below 1024 bytes, as its specification says.
bool is_lfs_pointer(int descriptor, uint64_t size) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  std::array<char, kBegin.size()> head{};
  return size >= head.size() && size < 1024 &&
         ::pread(descriptor, head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) &&
         std::string_view(head.data(), head.size()) == kBegin;
}

// Files of the kernel call themselves regular, but may have no end, or wait: /proc/kmsg.
bool is_of_kernel(int descriptor) {
  struct statfs facts {};
  if (descriptor < 0 || ::fstatfs(descriptor, &facts) != 0) return false;
  for (const auto magic : {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC})
    if (facts.f_type == magic) return true;
  return false;
}

}  // namespace

// O_NONBLOCK: without it, opening a pipe waits for a writer.
RegularFile::RegularFile(const std::string& path, uint64_t most_bytes)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat facts {};
  const int error = descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0 ? errno : 0;
  if (error == ENXIO && ::stat(path.c_str(), &facts) == 0)  // sockets cannot be opened
    problem_ = no_file(facts.st_mode);
  else
    problem_ = error != 0 ? std::strerror(error) : no_file(facts.st_mode);
  if (problem_.empty() && is_of_kernel(descriptor_))
    problem_ = "is a file of the kernel, and no file of data";
  size_ = static_cast<uint64_t>(facts.st_size);
  if (problem_.empty()) problem_ = too_many_bytes(size_, most_bytes);
  if (problem_.empty() && is_lfs_pointer(descriptor_, size_))
    problem_ = "is a pointer of Git LFS, and not the file: git lfs pull brings it";
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      problem_(std::move(other.problem_)) {}

std::string RegularFile::text() const {
  std::string text;
  for (std::string piece(std::clamp<uint64_t>(size_, 1, 1 << 20), '\0');;) {
    const std::size_t got = read(piece.data(), piece.size());
    if (got == 0) return text;
    text.append(piece, 0, got);
  }
}

std::size_t RegularFile::read(char* to, std::size_t bytes) const {
  ssize_t got = 0;
  do {
    got = ::read(descriptor_, to, bytes);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw OperatingError({path_}, std::string("cannot be read: ") + std::strerror(errno));
  return static_cast<std::size_t>(got);
}

std::string text_of_file(const std::string& path, uint64_t most_bytes) {
  const RegularFile file = good_file(path, most_bytes);
  return file.text();
}

void for_each_line(const std::string& path, std::size_t most_bytes,
                   const std::function<void(std::string& line)>& visit) {
  const RegularFile file = good_file(path);
  std::string piece(1 << 16, '\0'), line;
  while (const std::size_t got = file.read(piece.data(), piece.size())) {
    std::string_view rest(piece.data(), got);
    for (std::size_t end = 0; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      line += rest.substr(0, end);
      if (line.size() <= most_bytes) visit(line);
      line.clear();
    }
    line += rest;
    if (line.size() <= most_bytes) continue;
    line.resize(most_bytes + 1);
    const off_t at = ::lseek(file.descriptor(), 0, SEEK_CUR);
    if (::lseek(file.descriptor(), at, SEEK_DATA) < 0 && errno == ENXIO) return;  // no data follow
  }
}

std::string too_many_bytes(uint64_t bytes, uint64_t most_bytes) {
  if (bytes <= most_bytes) return "";
  return "has " + grouped(static_cast<int64_t>(bytes)) + " bytes, and at most " +
         grouped(static_cast<int64_t>(most_bytes)) + " are read";
}

std::string_view no_file(uint32_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "is a folder, and no file";
  if (S_ISFIFO(mode)) return "is a pipe, and no file";
  return S_ISSOCK(mode) ? "is a socket, and no file" : "is a device, and no file";
}

}  // namespace tutti
