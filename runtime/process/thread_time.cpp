#include "runtime/process/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace tutti {
namespace {

// The second number of the kernel's line about this thread: man 5 proc, Documentation/scheduler/sched-stats.
Nanoseconds time_in_run_queues() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 96> line{};
  const auto bytes = read(file, line.data(), line.size() - 1);
  close(file);
  if (bytes <= 0) return {};
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
