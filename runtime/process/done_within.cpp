#include "runtime/process/done_within.h"

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace tutti {

bool done_within(Nanoseconds limit, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  const auto all = [done, work = std::move(work)] {
    work();
    *done = true;
  };
  try {
    std::thread(all).detach();
  } catch (const std::system_error&) {  // there is no thread to be had
    all();
  }
  const TimePoint until = std::chrono::steady_clock::now() + limit;
  while (!*done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *done;
}

}  // namespace tutti
