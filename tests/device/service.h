#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "tests/device/order.h"
#include "tests/device/rendezvous.h"

namespace tutti::test_device {

// A communicator as its kernels know it.
struct Link {
  Link(const CommunicatorId& id, int rank, const std::vector<int>& ranks);

  Rendezvous meeting;
  std::atomic<bool> aborted{false};

  struct Collective {
    uint64_t number;
    Kernel send, receive;
  };
  std::deque<Collective> pending;  // under the lock of the state
};

// The thread of the process that runs kernels of collectives without anybody of the process waiting for them:
// in eager mode once all ranks have sent, in late mode when another rank waits.
class Service {
 public:
  void add(const std::shared_ptr<Link>& link);
  void remove(const std::shared_ptr<Link>& link);
  // Something may be to do. Under the lock of the state.
  void wake();

 private:
  [[noreturn]] void run();
  bool serve(Lock& lock, Link& link);

  std::set<std::shared_ptr<Link>> links_;  // all under the lock of the state
  bool awake_ = false;
  bool runs_ = false;
  std::condition_variable changed_;
};

Service& service();

}  // namespace tutti::test_device
