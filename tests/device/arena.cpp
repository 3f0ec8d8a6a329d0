#include "tests/device/arena.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace tutti::test_device {

void Arena::map(const char* name, std::size_t bytes, int protection) {
  file_ = memfd_create(name, MFD_CLOEXEC);
  TORCH_CHECK(file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0, "no memory for the ", name);
  const int flags = MAP_SHARED | MAP_NORESERVE;
  void* const shadow = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_, 0);
  void* const front = mmap(nullptr, bytes, protection, flags, file_, 0);
  TORCH_CHECK(shadow != MAP_FAILED && front != MAP_FAILED, "no address space for the ", name);
  shadow_ = static_cast<char*>(shadow);
  front_ = static_cast<char*>(front);
  bytes_ = bytes;
}

void Arena::release(const char* front, std::size_t bytes) const {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(to_shadow(front));
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = (begin + bytes) / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_REMOVE);
}

}  // namespace tutti::test_device
