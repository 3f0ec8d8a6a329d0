#include "io/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/error.h"
#include "runtime/process/this_process.h"

namespace tutti {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(path + ": cannot be read: " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) fail(path, errno);
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Read by the handler of SIGBUS, without a lock.
struct MappedRange {
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<size_t> size{0};
  std::array<char, 1024> path{};
};
using MappedRanges = std::array<MappedRange, 64>;  // files at once; the error does not name those beyond

MappedRanges& mapped_ranges() {
  static MappedRanges all;
  return all;
}

void print(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

struct sigaction& handler_before() {
  static struct sigaction before {};
  return before;
}

// Handles reads behind the end of a mapped file. For other addresses restores the previous handler: a fault
// then repeats, and a signal that was sent is sent again.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const MappedRange& place : mapped_ranges()) {
    const std::byte* begin = place.begin.load();
    if (begin == nullptr || at < begin || at >= begin + place.size.load()) continue;
    if (first_to_report(place.path.data())) {
      print("error: ");
      print(place.path.data());
      print(": it was cut short while it was read\n");
      linger();
    }
    ::_exit(1);
  }
  ::sigaction(SIGBUS, &handler_before(), nullptr);
  if (info->si_code <= 0) ::raise(SIGBUS);
}

void note(const std::byte* begin, size_t size, const std::string& path) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static const bool watched = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, &handler_before()) == 0;
  }();
  if (!watched) return;
  for (MappedRange& place : mapped_ranges()) {
    if (place.begin.load() != nullptr) continue;
    path.copy(place.path.data(), place.path.size() - 1);
    place.path[std::min(path.size(), place.path.size() - 1)] = '\0';
    place.size = size;
    place.begin = begin;
    return;
  }
}

void forget(const std::byte* begin) {
  for (MappedRange& place : mapped_ranges())
    if (place.begin.load() == begin) place.begin = nullptr;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail(path, errno);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // an empty mapping is an error
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number(), 0);
  if (data == MAP_FAILED) fail(path, errno);
  data_ = static_cast<const std::byte*>(data);
  note(data_, size_, path_);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace tutti
