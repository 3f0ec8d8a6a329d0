#include "runtime/process/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace tutti {
namespace {

// The kernel's line about a thread, kept open: to open it takes longer than to read it.
struct SchedulerFile {
  const int descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  ~SchedulerFile() {
    if (descriptor >= 0) close(descriptor);
  }
};

// The second number of the line: man 5 proc, Documentation/scheduler/sched-stats.
Nanoseconds time_in_run_queues() {
  thread_local const SchedulerFile file;
  std::array<char, 96> line{};
  if (pread(file.descriptor, line.data(), line.size() - 1, 0) <= 0) return {};
  char* after_first = nullptr;
  std::strtoll(line.data(), &after_first, 10);
  return Nanoseconds(std::strtoll(after_first, nullptr, 10));
}

ThreadTime now() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {std::chrono::steady_clock::now().time_since_epoch(),
          std::chrono::seconds(cpu.tv_sec) + Nanoseconds(cpu.tv_nsec), time_in_run_queues()};
}

}  // namespace

ThreadTime& ThreadTime::operator+=(const ThreadTime& other) {
  all += other.all;
  running += other.running;
  ready += other.ready;
  return *this;
}

ThreadTimer::ThreadTimer() : since_(now()) {}

ThreadTime ThreadTimer::elapsed() const {
  const ThreadTime until = now();
  return {until.all - since_.all, until.running - since_.running, until.ready - since_.ready};
}

}  // namespace tutti
