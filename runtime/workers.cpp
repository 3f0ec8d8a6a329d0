#include "runtime/workers.h"

#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/error.h"

namespace tutti {
namespace {

class ThreadWorkers final : public Workers {
 public:
  explicit ThreadWorkers(int threads) {
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

  ~ThreadWorkers() override { end(); }

  int threads() const override { return static_cast<int>(threads_.size()) + 1; }

  void run(int parts, const std::function<void(int part)>& work) override {
    std::unique_lock lock(mutex_);
    work_ = &work;
    next_ = 0;
    left_ = parts_ = parts;
    errors_.assign(static_cast<std::size_t>(parts), nullptr);
    work_comes_.notify_all();
    take_parts(lock);
    all_done_.wait(lock, [this] { return left_ == 0; });
    for (const std::exception_ptr& error : errors_)
      if (error) std::rethrow_exception(error);
  }

 private:
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    work_comes_.notify_all();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_comes_.wait(lock, [this] { return ends_ || next_ < parts_; });
      if (ends_) return;
      take_parts(lock);
    }
  }

  void take_parts(std::unique_lock<std::mutex>& lock) {
    while (next_ < parts_) {
      const int part = next_++;
      lock.unlock();
      std::exception_ptr error = attempt(part);
      lock.lock();
      errors_[static_cast<std::size_t>(part)] = std::move(error);
      if (--left_ == 0) all_done_.notify_one();
    }
  }

  std::exception_ptr attempt(int part) const {
    try {
      (*work_)(part);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  std::mutex mutex_;  // guards what follows, but for the call of work_
  std::condition_variable work_comes_, all_done_;
  const std::function<void(int part)>* work_ = nullptr;
  int next_ = 0;                            // part that no thread has taken
  int parts_ = 0;                           // of the work
  int left_ = 0;                            // parts that have not ended
  std::vector<std::exception_ptr> errors_;  // by part
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // last: joined before all else goes
};

}  // namespace

std::unique_ptr<Workers> start_workers(int threads) { return std::make_unique<ThreadWorkers>(threads); }

}  // namespace tutti
