#include "tests/device/order.h"

#include <chrono>
#include <utility>

namespace tutti::test_device {

namespace {
thread_local const Kernel* running = nullptr;
}  // namespace

Clock& host_clock() {
  thread_local Clock clock;
  return clock;
}

const Kernel* running_kernel() { return running; }

RunningKernel::RunningKernel(const Kernel* kernel) : outer_(std::exchange(running, kernel)) {}
RunningKernel::~RunningKernel() { running = outer_; }

// A kernel that runs: done when this object goes, whether the kernel has thrown or not.
class Order::Place {
 public:
  Place(Order& order, Lock& lock, const Kernel& kernel) : order_(order), lock_(lock), kernel_(kernel) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (!lock_.owns_lock()) lock_.lock();
    order_.streams_[static_cast<std::size_t>(kernel_.stream)].done = kernel_.number;
    order_.changed_.notify_all();
  }

 private:
  Order& order_;
  Lock& lock_;
  const Kernel& kernel_;
};

Order::Order() : streams_(kDevices * kStreamsOfADevice) {}

Kernel Order::launch(const std::string& name, int stream) {
  Stream& s = streams_[static_cast<std::size_t>(stream)];
  s.clock.join(host_clock());
  Kernel kernel{&*names_.insert(name).first, stream, ++s.launched, s.clock};
  s.clock.set(stream, kernel.number);
  ++counters.kernels;
  ++kernels[name];
  return kernel;
}

void Order::run_now(Lock& lock, const Kernel& kernel, const std::function<void()>& work) {
  const Place place(*this, lock, kernel);
  complete(lock, kernel.after);
  lock.unlock();
  const RunningKernel now(&kernel);
  work();
}

void Order::submit(Lock& lock, const Kernel& kernel, std::function<void()> work, Gate gate) {
  const bool eager = mode == Mode::kEager;
  if (eager && !gate && (gated_ == 0 || try_complete(lock, kernel.after, /*wanted=*/false)))
    return run_now(lock, kernel, work);
  if (!eager) ++counters.late_kernels;
  if (gate) ++gated_;
  streams_[static_cast<std::size_t>(kernel.stream)].queue.push_back(
      {kernel, std::move(work), std::move(gate)});
  if (eager) try_complete(lock, kernel.stream, kernel.number, /*wanted=*/false);
}

bool Order::is_next(const Stream& stream) const {
  return !stream.queue.empty() && stream.queue.front().kernel.number == stream.done + 1;
}

void Order::run_next(Lock& lock, Stream& stream) {
  Late late = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (late.gate) --gated_;
  const Place place(*this, lock, late.kernel);
  complete(lock, late.kernel.after);
  lock.unlock();
  std::exception_ptr failure;
  {
    const RunningKernel none(nullptr);
    try {
      late.work();
    } catch (...) {
      failure = std::current_exception();
    }
    late.work = {};
    late.gate = {};
  }
  lock.lock();
  if (failure && !failure_) failure_ = failure;
}

// A kernel that is neither done nor the next of the queue is run by another thread now.
void Order::complete(Lock& lock, int stream, uint64_t kernel) {
  constexpr std::chrono::microseconds kAskGatesEvery{100};
  Stream& s = streams_[static_cast<std::size_t>(stream)];
  while (s.done < kernel) {
    if (!is_next(s))
      changed_.wait(lock);
    else if (const Gate& gate = s.queue.front().gate; gate && !gate(/*wanted=*/true))
      changed_.wait_for(lock, kAskGatesEvery);
    else
      run_next(lock, s);
  }
}

bool Order::try_complete(Lock& lock, int stream, uint64_t kernel, bool wanted) {
  Stream& s = streams_[static_cast<std::size_t>(stream)];
  while (s.done < kernel) {
    if (!is_next(s)) return false;
    const Kernel next = s.queue.front().kernel;
    if (!try_complete(lock, next.after, wanted)) return false;
    if (!is_next(s) || s.done >= next.number) continue;  // the lock was open
    if (const Gate& gate = s.queue.front().gate; gate && !gate(wanted)) return false;
    run_next(lock, s);
  }
  return true;
}

bool Order::try_complete(Lock& lock, const Clock& clock, bool wanted) {
  bool all = true;
  for (int stream = 0; stream < clock.streams(); ++stream)
    all = try_complete(lock, stream, clock.at(stream), wanted) && all;
  return all;
}

bool Order::query(Lock& lock, const Clock& clock) {
  if (gated_ > 0 && !try_complete(lock, clock, /*wanted=*/true)) return false;
  learn(lock, clock);
  return true;
}

void Order::complete(Lock& lock, const Clock& clock) {
  for (int stream = 0; stream < clock.streams(); ++stream) complete(lock, stream, clock.at(stream));
}

Clock Order::mark(int stream) {
  Stream& s = streams_[static_cast<std::size_t>(stream)];
  s.clock.join(host_clock());
  return s.clock;
}

void Order::make_wait(int stream, const Clock& clock) {
  Stream& s = streams_[static_cast<std::size_t>(stream)];
  s.clock.join(host_clock());
  s.clock.join(clock);
}

void Order::host_wait(Lock& lock, const Clock& clock, const std::string& cause, int own) {
  if (!host_clock().covers(clock)) {
    ++counters.host_waits;
    ++waits[cause];
    if (clock.at(own) >= launched(own)) ++stalls[cause];
  }
  learn(lock, clock);
}

void Order::learn(Lock& lock, const Clock& clock) {
  complete(lock, clock);
  join(clock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Order::join(const Clock& clock) {
  host_clock().join(clock);
  known_.join(clock);
}

void Order::run_all(Lock& lock) {
  for (int stream = 0; stream < kDevices * kStreamsOfADevice; ++stream)
    complete(lock, stream, launched(stream));
}

}  // namespace tutti::test_device
