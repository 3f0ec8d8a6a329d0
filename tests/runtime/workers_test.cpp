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

TEST(Workers, WorkBehindOneThatIsFalseIsLeftOutAndNoneBefore) {
  for (const int threads : {1, 4}) {
    Workers workers(threads);
    std::vector<std::atomic<int>> done(1000);
    workers.for_each(done.size(), [&](std::size_t i) {
      ++done[i];
      return i != 100;
    });
    for (std::size_t i = 0; i <= 100; ++i) EXPECT_EQ(done[i], 1) << i << " of " << threads;
    if (threads == 1) EXPECT_EQ(done[101], 0);
  }
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

TEST(Workers, EachPieceIsDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    const auto workers = start_workers(threads);
    EXPECT_EQ(workers->threads(), threads);
    for (const int pieces : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(pieces));
      std::atomic<int> left = pieces;
      for (auto& one : done)
        workers->add([&one, &left] {
          ++one;
          --left;
        });
      workers->help_until([&] { return left == 0; });
      for (const auto& one : done) EXPECT_EQ(one, 1) << threads << " threads, " << pieces << " pieces";
    }
  }
}

// Each piece waits until all have begun.
TEST(Workers, PiecesRunAtTheSameTime) {
  std::mutex mutex;
  std::condition_variable all_here;
  std::set<std::thread::id> here;
  std::atomic<int> left = 3;
  std::atomic<bool> met = true;
  const auto workers = start_workers(3);
  for (int piece = 0; piece < 3; ++piece)
    workers->add([&] {
      std::unique_lock lock(mutex);
      here.insert(std::this_thread::get_id());
      all_here.notify_all();
      if (!all_here.wait_for(lock, std::chrono::seconds(60), [&] { return here.size() == 3; })) met = false;
      --left;
    });
  workers->help_until([&] { return left == 0; });
  EXPECT_TRUE(met);
  EXPECT_TRUE(here.contains(std::this_thread::get_id())) << "the thread that calls has its share";
}

TEST(Workers, PiecesAreTakenInTheirOrderAndOnlyUntilDone) {
  const auto workers = start_workers(1);
  std::vector<int> order;
  for (int piece = 0; piece < 9; ++piece) workers->add([&order, piece] { order.push_back(piece); });
  workers->help_until([&] { return order.size() == 4; });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Workers, PiecesThatHaveNotBegunAreDroppedAtTheEnd) {
  std::atomic<int> begun = 0;
  {
    const auto workers = start_workers(2);
    for (int piece = 0; piece < 1000; ++piece)
      workers->add([&] {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
    while (begun == 0) std::this_thread::yield();
  }
  EXPECT_LT(begun, 1000);
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
