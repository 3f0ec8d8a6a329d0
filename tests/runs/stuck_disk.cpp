#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <string>

// In the place of the system's: the TUTTI_STUCK_AT-th write to a file whose path ends with TUTTI_STUCK_FILE
// takes TUTTI_STUCK_S seconds; with "3+" the third and all that follow.
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

void stall(int file) {
  static std::atomic<int> writes{0};
  const char* end = getenv("TUTTI_STUCK_FILE");
  if (!end || !is_stuck_file(file, end) || !is_struck(++writes)) return;
  const double seconds = atof(getenv("TUTTI_STUCK_S"));
  timespec left{static_cast<time_t>(seconds), static_cast<int64_t>(1e9 * (seconds - std::floor(seconds)))};
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace

extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  stall(file);
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

extern "C" ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  stall(file);
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}
