#include "io/mapped_file.h"

#include <sanitizer/asan_interface.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/this_process.h"
#include "runtime/regular_file.h"

namespace tutti {

// Read by the handler of SIGBUS, without a lock.
struct MappedRange {
  std::atomic<std::byte*> begin{nullptr};
  size_t size = 0;
  const char* path = nullptr;  // of a file that is read; null = one that is written
  std::atomic<bool> detached{false};
};

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw UserError({path}, "cannot be read: " + problem);
}

using MappedRanges = std::array<MappedRange, 4096>;  // at once; those beyond are not handled

MappedRanges& mapped_ranges() {
  static MappedRanges all;
  return all;
}

void print(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Replaces a range from the page of `at` to its end by memory that belongs to no file.
bool detach(MappedRange& range, const std::byte* at) {
  std::byte* begin = range.begin.load();
  const size_t first = static_cast<size_t>(at - begin) / page_bytes() * page_bytes();
  range.detached = true;
  return ::mmap(begin + first, range.size - first, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

[[noreturn]] void end_process(const char* path) {
  if (first_to_report()) {
    print("error: ");
    print(reporting_rank());
    print(path);
    print(": it was cut short while it was read\n");
  } else {
    linger();
  }
  ::_exit(1);
}

// Handles accesses behind the end of a mapped file.
bool handle_bus_error(const siginfo_t& info) {
  const auto* at = static_cast<const std::byte*>(info.si_addr);
  for (MappedRange& range : mapped_ranges()) {
    const std::byte* begin = range.begin.load();
    if (begin == nullptr || at < begin || at >= begin + range.size) continue;
    if (range.path != nullptr) end_process(range.path);
    return detach(range, at);
  }
  return false;
}

// Null if there is no place.
MappedRange* watch(void* begin, size_t size, const char* path) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  page_bytes();  // not first in the handler
  set_bus_error_handler(handle_bus_error);
  MappedRanges& all = mapped_ranges();
  const auto place =
      std::ranges::find_if(all, [](const auto& range) { return range.begin.load() == nullptr; });
  if (place == all.end()) return nullptr;
  place->size = size;
  place->path = path;
  place->detached = false;
  place->begin = static_cast<std::byte*>(begin);
  return &*place;
}

void forget(MappedRange* range) {
  if (range != nullptr) range->begin = nullptr;
}

// The bytes of a mapping's last page behind the file's end, which read as zeros. AddressSanitizer sees
// readers that go there, as they are poisoned.
std::span<const std::byte> behind_end(std::span<const std::byte> bytes) {
  const size_t used = bytes.size() % page_bytes();
  return {bytes.data() + bytes.size(), used == 0 ? 0 : page_bytes() - used};
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path), printable_path_(printable(path)) {
  const RegularFile file(path);
  if (!file.problem().empty()) fail(path, file.problem());
  size_ = static_cast<size_t>(file.size());
  if (size_ == 0) return;  // an empty mapping is an error
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED && errno == ENOMEM)
    throw RunError(EndKind::kOutOfMemoryElsewhere, {path}, "cannot be read: out of memory");
  if (data == MAP_FAILED) fail(path, std::strerror(errno));
  data_ = static_cast<const std::byte*>(data);
  ASAN_POISON_MEMORY_REGION(behind_end(bytes()).data(), behind_end(bytes()).size());
  range_ = watch(data, size_, printable_path_.c_str());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget(range_);
  ASAN_UNPOISON_MEMORY_REGION(behind_end(bytes()).data(), behind_end(bytes()).size());
  ::munmap(const_cast<std::byte*>(data_), size_);
}

WritableMapping::WritableMapping(int descriptor, uint64_t offset, size_t size) : size_(size) {
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return;
  data_ = static_cast<uint8_t*>(data);
  range_ = watch(data, size, nullptr);
}

WritableMapping::~WritableMapping() {
  if (data_ == nullptr) return;
  forget(range_);
  ::munmap(data_, size_);
}

bool WritableMapping::detached() const { return range_ != nullptr && range_->detached; }

}  // namespace tutti
