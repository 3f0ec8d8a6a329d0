#include "runtime/process/start_limit.h"

#include <unistd.h>

#include <cstdio>

namespace tutti {

StartLimit::StartLimit(int rank, std::string doing, Nanoseconds limit) {
  thread_ = std::thread([this, rank, doing = std::move(doing), limit] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return over_; })) return;
    std::fprintf(stderr, "error: rank %d: %s takes longer than %.0f s: another rank hangs or never started\n",
                 rank, doing.c_str(), seconds(limit));
    std::fflush(nullptr);
    _exit(1);
  });
}

StartLimit::~StartLimit() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace tutti
