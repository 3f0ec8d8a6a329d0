#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/device/clock.h"
#include "tests/device/test_device.h"

namespace tutti::test_device {

// Held over each change of the test device's state, but not while a kernel runs.
using Lock = std::unique_lock<std::mutex>;

constexpr int kDevices = 4;
constexpr int kStreamsOfADevice = 33;  // the default stream and a pool of 32

// A kernel's place in the order of all kernels.
struct Kernel {
  const std::string* name = nullptr;
  int stream = 0;
  uint64_t number = 0;  // in its stream, from 1
  Clock after;          // kernels that are over before this one begins
};

// Says whether a kernel may run, if not only kernels decide it: a collective needs other ranks. `wanted`:
// somebody waits for the kernel. Called under the lock.
using Gate = std::function<bool(bool wanted)>;

// The knowledge of the calling thread: kernels that are over.
Clock& host_clock();

// The kernel that the calling thread runs now, if its scratch comes from the device's memory; else null. In
// late mode, kernels that waited have scratch of the host: freed memory may be in other hands by then.
const Kernel* running_kernel();

// Makes `kernel`, which may be null, the one that the calling thread runs.
class RunningKernel {
 public:
  explicit RunningKernel(const Kernel* kernel);
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;

 private:
  const Kernel* outer_;
};

// Streams, events and threads as vector clocks. A kernel is after all earlier kernels of its stream, after
// what the stream has waited for, and after what the launching thread knows to be over. Kernels run by this
// order, whichever thread runs them.
class Order {
 public:
  Order();

  // Takes the next place of a stream. run_now() or submit() must follow.
  Kernel launch(const std::string& name, int stream);

  // Runs a kernel once those before it are over. The lock is open while `work` runs.
  void run_now(Lock& lock, const Kernel& kernel, const std::function<void()>& work);
  // True if kernels may run later than at their launch: in late mode, and while a collective waits for other
  // ranks.
  bool defers() const { return mode == Mode::kLate || gated_ > 0; }

  // Runs a kernel: now in eager mode, when somebody waits for it in late mode. A kernel with a gate that is
  // closed, and what is after it, runs later in both; the caller does not wait.
  void submit(Lock& lock, const Kernel& kernel, std::function<void()> work, Gate gate = {});

  // Blocks until a kernel is over. The calling thread does not learn of it.
  void complete(Lock& lock, int stream, uint64_t kernel);
  // Runs what needs to wait neither for gates nor for other threads. True if the kernel is over.
  bool try_complete(Lock& lock, int stream, uint64_t kernel, bool wanted);

  // As learn(), but false if a closed gate is in the way.
  bool query(Lock& lock, const Clock& clock);

  // Everything launched on a stream so far, and all that comes before.
  Clock mark(int stream);

  // Later kernels of a stream are after `clock`.
  void make_wait(int stream, const Clock& clock);

  // The calling thread waits. Counted under `cause`, unless the thread knows already that all is over; also
  // as a stall, if nothing else is launched on `own`, the thread's stream. Throws the error of a kernel that
  // failed late.
  void host_wait(Lock& lock, const Clock& clock, const std::string& cause, int own);

  // As host_wait(), uncounted: the host has asked, and the answer is yes.
  void learn(Lock& lock, const Clock& clock);

  // The calling thread learns from a message what another thread knows.
  void join(const Clock& clock);

  // Runs all kernels that are launched. No thread learns of this.
  void run_all(Lock& lock);

  bool is_over(const Kernel& kernel) const {
    return streams_[static_cast<std::size_t>(kernel.stream)].done >= kernel.number;
  }
  uint64_t launched(int stream) const { return streams_[static_cast<std::size_t>(stream)].launched; }

  // What at least one thread knows to be over.
  const Clock& known() const { return known_; }

  std::atomic<Mode> mode{Mode::kEager};
  Counters counters;
  std::map<std::string, int64_t> kernels, waits, stalls;  // by name, by cause

 private:
  struct Late {
    Kernel kernel;
    std::function<void()> work;
    Gate gate;
  };
  struct Stream {
    uint64_t launched = 0;
    uint64_t done = 0;
    Clock clock;
    std::deque<Late> queue;
  };
  class Place;

  void complete(Lock& lock, const Clock& clock);
  bool try_complete(Lock& lock, const Clock& clock, bool wanted);
  bool is_next(const Stream& stream) const;
  void run_next(Lock& lock, Stream& stream);

  std::vector<Stream> streams_;
  std::set<std::string> names_;
  Clock known_;
  int gated_ = 0;  // kernels with a gate that have not begun
  std::condition_variable changed_;
  std::exception_ptr failure_;  // of a late kernel, until a wait throws it
};

}  // namespace tutti::test_device
