#include "runtime/process/watchdog.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace tutti {

bool run_with_timeout(Nanoseconds limit, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  const auto all = [done, work = std::move(work)] {
    work();
    *done = true;
  };
  try {
    std::thread(all).detach();
  } catch (const std::system_error&) {  // no thread can be created
    all();
  }
  const TimePoint until = std::chrono::steady_clock::now() + limit;
  while (!*done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *done;
}

StartWatchdog::StartWatchdog(int rank, std::string doing, Nanoseconds limit) {
  const auto watch = [this, rank, doing = std::move(doing), limit] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return over_; })) return;
    std::fprintf(stderr, "error: rank %d: %s takes longer than %.0f s: another rank hangs or never started\n",
                 rank, doing.c_str(), seconds(limit));
    std::fflush(nullptr);
    _exit(1);
  };
  try {
    thread_ = std::thread(watch);
  } catch (const std::system_error&) {  // no thread can be created: the call has no limit
  }
}

StartWatchdog::~StartWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace tutti
