#pragma once

#include <cstddef>

namespace tutti::test_device {

// A file in memory, mapped twice: the front has the addresses of tensors, the shadow those that kernels use.
// Pages that were never written cost nothing.
class Arena {
 public:
  // `protection`: of the front, as mmap's. Throws if there is no address space.
  void map(const char* name, std::size_t bytes, int protection);

  bool in_front(const void* p) const { return p >= front_ && p < front_ + bytes_; }
  bool in_shadow(const void* p) const { return p >= shadow_ && p < shadow_ + bytes_; }
  char* to_shadow(const void* front) const { return shadow_ + offset_of(front); }
  char* to_front(const void* shadow) const { return front_ + (static_cast<const char*>(shadow) - shadow_); }
  std::ptrdiff_t offset_of(const void* front) const { return static_cast<const char*>(front) - front_; }

  // Gives the whole pages of a range of the front back to the system. They read as zero afterwards.
  void release(const char* front, std::size_t bytes) const;

  char* front() const { return front_; }
  std::size_t bytes() const { return bytes_; }
  int file() const { return file_; }

 private:
  char* front_ = nullptr;
  char* shadow_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
};

}  // namespace tutti::test_device
