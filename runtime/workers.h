#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tutti {

// Threads that take pieces of work in the order in which they are added: the thread that calls help_until,
// and `threads` - 1 more. The object's destructor waits for begun pieces, drops the other pieces, and ends
// the threads.
class Workers {
 public:
  // Throws std::system_error if there are too few threads.
  explicit Workers(int threads);
  ~Workers();

  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Some thread calls `piece`, once. It must not throw.
  void add(std::function<void()> piece);

  // Takes pieces, too, until done() is true. Only the end of a piece may make done() true.
  void help_until(const std::function<bool()>& done);

  // Calls work(i), which must not throw, for each i below `count`, on all threads; returns when all calls are
  // done. If work(i) is false, some calls behind i are left out, and none before.
  void for_each(std::size_t count, const std::function<bool(std::size_t)>& work);

 private:
  void serve();
  void do_next(std::unique_lock<std::mutex>& lock);
  void end();

  std::mutex mutex_;  // guards the members below, but not running pieces
  std::condition_variable added_, ended_;
  std::deque<std::function<void()>> pieces_;  // that no thread has taken
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // last: joined before all else goes
};

// The cores that this process may run on.
int usable_cores();

// Makes Workers with this number of threads.
using StartWorkers = std::function<std::unique_ptr<Workers>(int threads)>;
std::unique_ptr<Workers> start_workers(int threads);

}  // namespace tutti
