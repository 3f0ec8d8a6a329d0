#include "runtime/process/this_process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

// Defined in libtutti.so.
extern "C" const char* tutti_shared_build_stamp() __attribute__((weak));
extern "C" const char* tutti_commit() __attribute__((weak));

namespace tutti {

std::string build_stamp(const std::string& elsewhere) {
  return tutti_shared_build_stamp ? tutti_shared_build_stamp() : elsewhere;
}

std::string build_and_commit(const std::string& elsewhere) {
  return build_stamp(elsewhere) + ", commit " + (tutti_commit ? tutti_commit() : "unknown");
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

bool first_to_report(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);  // stays open until the process ends
  return file < 0 || ::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

void linger() {
  const timespec half_a_second{0, 500'000'000};
  ::nanosleep(&half_a_second, nullptr);
}

}  // namespace tutti
