#pragma once

#include <functional>
#include <memory>

namespace tutti {

// Threads that share a piece of work.
class Workers {
 public:
  virtual ~Workers() = default;

  virtual int threads() const = 0;

  // Calls work(0) to work(parts - 1), each once, in any order and on any of the threads, and returns when all
  // calls have ended. Throws what the lowest part threw that threw. Called by one thread at a time.
  virtual void run(int parts, const std::function<void(int part)>& work) = 0;
};

// Makes Workers with this number of threads.
using StartWorkers = std::function<std::unique_ptr<Workers>(int threads)>;

// The thread that calls run(), and `threads` - 1 more, which end with the object.
std::unique_ptr<Workers> start_workers(int threads);

}  // namespace tutti
