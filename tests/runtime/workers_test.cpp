#include "runtime/workers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace tutti {
namespace {

int threads_here() {
  int count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// True once the process has this number of threads; the kernel forgets a thread a little after it was joined.
bool has_threads(int wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (threads_here() != wanted && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return threads_here() == wanted;
}

// Those that were started must end; their addresses are what is short.
TEST(Workers, TooFewThreadsAreAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlimit lower{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20),
                     before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_THROW(start_workers(100), std::system_error);
  setrlimit(RLIMIT_AS, &before);
}

TEST(Workers, EachPartIsDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    const auto workers = start_workers(threads);
    EXPECT_EQ(workers->threads(), threads);
    for (const int parts : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(parts));
      workers->run(parts, [&](int part) { ++done[static_cast<std::size_t>(part)]; });
      for (const auto& one : done) EXPECT_EQ(one, 1) << threads << " threads, " << parts << " parts";
    }
  }
}

// Each part waits until all have begun.
TEST(Workers, PartsRunAtTheSameTime) {
  const auto workers = start_workers(3);
  std::mutex mutex;
  std::condition_variable all_here;
  std::set<std::thread::id> here;
  bool met = true;
  workers->run(3, [&](int) {
    std::unique_lock lock(mutex);
    here.insert(std::this_thread::get_id());
    all_here.notify_all();
    met = all_here.wait_for(lock, std::chrono::seconds(60), [&] { return here.size() == 3; }) && met;
  });
  EXPECT_TRUE(met);
  EXPECT_TRUE(here.contains(std::this_thread::get_id())) << "the thread that calls has its share";
}

TEST(Workers, TheLowestPartsErrorIsThrownWhenAllHaveEnded) {
  const auto workers = start_workers(2);
  std::atomic<int> ended = 0;
  try {
    workers->run(8, [&](int part) {
      if (part == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++ended;
      if (part == 2 || part == 5) throw std::runtime_error("part " + std::to_string(part));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "part 2");
  }
  EXPECT_EQ(ended, 8);
  workers->run(2, [&](int) { ++ended; });
  EXPECT_EQ(ended, 10) << "they work on";
}

TEST(Workers, ThreadsEndWithTheObject) {
  const int before = threads_here();
  {
    const auto workers = start_workers(4);
    EXPECT_TRUE(has_threads(before + 3));
  }
  EXPECT_TRUE(has_threads(before));
}

}  // namespace
}  // namespace tutti
