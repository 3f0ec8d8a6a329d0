#include "runtime/workers.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <utility>

#include "runtime/error.h"

namespace tutti {

Workers::Workers(int threads) {
  TUTTI_ASSERT(threads > 0, "no threads");
  try {
    for (int i = 1; i < threads; ++i)
      threads_.emplace_back([this] {
        pthread_setname_np(pthread_self(), "worker");
        serve();
      });
  } catch (...) {  // too few threads: those that were started are joined
    end();
    throw;
  }
}

Workers::~Workers() { end(); }

void Workers::add(std::function<void()> piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
  added_.notify_one();
}

void Workers::help_until(const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  while (!done()) {
    if (pieces_.empty())
      ended_.wait(lock);
    else
      do_next(lock);
  }
}

void Workers::for_each(std::size_t count, const std::function<bool(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<int> left = threads();
  for (int thread = 0; thread < threads(); ++thread)
    add([&] {
      for (std::size_t i = next++; i < count; i = next++)
        if (!work(i)) next = count;
      --left;
    });
  help_until([&] { return left == 0; });
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return ends_ || !pieces_.empty(); });
    if (ends_) return;
    do_next(lock);
  }
}

void Workers::do_next(std::unique_lock<std::mutex>& lock) {
  std::function<void()> piece = std::move(pieces_.front());
  pieces_.pop_front();
  lock.unlock();
  piece();
  piece = nullptr;  // what it holds goes while the lock is free
  lock.lock();
  ended_.notify_all();
}

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    pieces_.clear();
  }
  added_.notify_all();
}

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

std::unique_ptr<Workers> start_workers(int threads) { return std::make_unique<Workers>(threads); }

}  // namespace tutti
