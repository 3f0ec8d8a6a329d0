#include "io/journal/growing_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tutti {
namespace {

uint64_t page_bytes() {
  static const uint64_t bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

// Growing past `ulimit -f` is a SIGXFSZ, which ends the process.
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
  if (window_ != nullptr) ::munmap(window_, window_end_ - window_begin_);
  if (descriptor_ < 0) return;
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) error_ = errno;  // then zeros stay at its end
  ::close(descriptor_);
}

bool GrowingFile::extend(uint64_t bytes) {
  if (error_ != 0) return false;
  const uint64_t begin = size_ / page_bytes() * page_bytes();
  const uint64_t pages = (std::max(bytes, kStretchBytes) + page_bytes() - 1) / page_bytes() + 1;
  const uint64_t end = begin + pages * page_bytes();
  error_ = reserve(end);
  if (error_ != 0) return false;
  void* fresh = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                       static_cast<off_t>(begin));
  if (fresh == MAP_FAILED) {
    error_ = errno;
    return false;
  }
  if (window_ != nullptr) ::munmap(window_, window_end_ - window_begin_);
  window_ = static_cast<uint8_t*>(fresh);
  window_begin_ = begin;
  window_end_ = end;
  return true;
}

int GrowingFile::reserve(uint64_t end) {
  if (beyond_file_limit(end)) return EFBIG;
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(descriptor_, static_cast<off_t>(window_end_),
                              static_cast<off_t>(end - window_end_));
  }
  // What it got before it failed would be missed elsewhere.
  if (error != 0 && ::ftruncate(descriptor_, static_cast<off_t>(window_end_)) != 0) return errno;
  return error;
}

}  // namespace tutti
