#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <string>

// In the place of the system's: the TUTTI_STUCK_AT-th write to a file whose path ends with TUTTI_STUCK_FILE
// takes TUTTI_STUCK_S seconds, or until a file TUTTI_STUCK_UNTIL is there; with "3+" the third and all that
// follow; with "open" its opening.
namespace {

bool is_stuck_file(int file, const std::string& end) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length > 0 && std::string(path, static_cast<size_t>(length)).ends_with(end);
}

bool is_struck(int write) {
  const char* at = getenv("TUTTI_STUCK_AT");
  return write == atoi(at) || (strchr(at, '+') && write > atoi(at));
}

void wait_for(const char* path) {
  constexpr timespec kPause{0, 10'000'000};
  while (access(path, F_OK) != 0) nanosleep(&kPause, nullptr);
}

void wait() {
  if (const char* until = getenv("TUTTI_STUCK_UNTIL")) return wait_for(until);
  const double seconds = atof(getenv("TUTTI_STUCK_S"));
  timespec left{static_cast<time_t>(seconds), static_cast<int64_t>(1e9 * (seconds - std::floor(seconds)))};
  while (nanosleep(&left, &left) != 0) {
  }
}

void stall(int file) {
  static std::atomic<int> writes{0};
  const char* end = getenv("TUTTI_STUCK_FILE");
  if (end && is_stuck_file(file, end) && is_struck(++writes)) wait();
}

int open_late(const char* path, int flags, mode_t mode) {
  const char* end = getenv("TUTTI_STUCK_FILE");
  const bool is_stuck = end && strcmp(getenv("TUTTI_STUCK_AT"), "open") == 0;
  if (is_stuck && std::string(path).ends_with(end)) wait();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// Of the arguments of open.
mode_t mode_of(va_list arguments, int flags) {
  return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(arguments, flags);
  va_end(arguments);
  return open_late(path, flags, mode);
}

extern "C" int open64(const char* path, int flags, ...) __attribute__((alias("open")));

extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  stall(file);
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

extern "C" ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  stall(file);
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}
