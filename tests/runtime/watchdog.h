#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace tutti {

// For a test whose failure is a hang: where the scope is not left within the time, the process ends with a
// failure that names the test.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit = std::chrono::seconds(60))
      : thread_([this, limit, name = name_of_test()] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, limit, [this] { return left_; })) return;
          std::printf("[  FAILED  ] %s: it hangs: not over after %d s\n", name.c_str(),
                      static_cast<int>(limit.count()));
          std::fflush(nullptr);
          _exit(1);
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static std::string name_of_test() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string(test->test_suite_name()) + "." + test->name();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool left_ = false;
  std::thread thread_;  // uses the others
};

}  // namespace tutti
