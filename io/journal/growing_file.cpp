#include "io/journal/growing_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

// Growing beyond `ulimit -f` raises SIGXFSZ, which would end the process.
bool beyond_file_limit(uint64_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

}  // namespace

GrowingFile::GrowingFile(const std::string& path) {
  ::unlink(path.c_str());
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) error_ = errno;
}

GrowingFile::~GrowingFile() {
  if (descriptor_ < 0) return;
  if (!truncated() && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    error_ = errno;  // zeros remain at the end
  ::close(descriptor_);
}

bool GrowingFile::append(std::span<const uint8_t> bytes, uint64_t spare) {
  if (size_ + bytes.size() + spare > reserved_ && !extend(bytes.size() + spare)) return false;
  std::copy(bytes.begin(), bytes.end(), mapping_->data() + (size_ - mapped_from_));
  size_ += bytes.size();
  return true;
}

std::string GrowingFile::error() {
  if (truncated()) return "it was cut short while the run wrote it";
  if (mapping_ != nullptr && mapping_->detached()) return "it could no longer be written";
  return error_ == 0 ? "" : std::strerror(error_);
}

bool GrowingFile::truncated() {
  struct stat status {};
  if (!truncated_ && reserved_ > 0 && ::fstat(descriptor_, &status) == 0)
    truncated_ = static_cast<uint64_t>(status.st_size) < reserved_;
  if (truncated_) reserved_ = 0;
  return truncated_;
}

bool GrowingFile::extend(uint64_t bytes) {
  if (!error().empty()) return false;
  const uint64_t page = ::sysconf(_SC_PAGESIZE);
  const uint64_t from = size_ / page * page;
  const uint64_t end = (size_ + std::max(bytes, kReservedBytes) + page - 1) / page * page;
  error_ = reserve(end);
  if (error_ != 0) return false;
  auto mapping = std::make_unique<WritableMapping>(descriptor_, from, end - from);
  if (mapping->data() == nullptr) {
    error_ = errno;
    return false;
  }
  mapping_ = std::move(mapping);
  mapped_from_ = from;
  reserved_ = end;
  return true;
}

int GrowingFile::reserve(uint64_t end) {
  if (beyond_file_limit(end)) return EFBIG;
  int error = EINTR;
  while (error == EINTR) {
    error =
        ::posix_fallocate(descriptor_, static_cast<off_t>(reserved_), static_cast<off_t>(end - reserved_));
  }
  // Free the part that was allocated before the failure.
  if (error != 0 && ::ftruncate(descriptor_, static_cast<off_t>(reserved_)) != 0) return errno;
  return error;
}

}  // namespace tutti
