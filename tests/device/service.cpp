#include "tests/device/service.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tests/device/state.h"

namespace tutti::test_device {

Link::Link(const CommunicatorId& id, int rank, const std::vector<int>& ranks)
    : meeting(id, rank, static_cast<int>(ranks.size()), ranks.at(static_cast<std::size_t>(rank))) {}

Service& service() {
  static auto& service = *new Service;
  return service;
}

void Service::add(const std::shared_ptr<Link>& link) {
  const Lock lock(state().mutex);
  links_.insert(link);
  if (!std::exchange(runs_, true)) std::thread([this] { run(); }).detach();
}

void Service::remove(const std::shared_ptr<Link>& link) {
  const Lock lock(state().mutex);
  links_.erase(link);
}

void Service::wake() {
  awake_ = true;
  changed_.notify_one();
}

void Service::run() {
  constexpr std::chrono::microseconds kAskOthersEvery{200};
  Lock lock(state().mutex);
  for (;;) {
    awake_ = false;
    bool waits = false;
    at::init_num_threads();  // kernels round as on other threads
    for (const auto& link : std::vector(links_.begin(), links_.end())) waits = serve(lock, *link) || waits;
    const auto is_awake = [this] { return awake_; };
    if (waits)
      changed_.wait_for(lock, kAskOthersEvery, is_awake);
    else
      changed_.wait(lock, is_awake);
  }
}

// True if something is left.
bool Service::serve(Lock& lock, Link& link) {
  Order& order = state().order;
  const auto over = [&](const Kernel& kernel, bool wanted) {
    return order.try_complete(lock, kernel.stream, kernel.number, wanted);
  };
  while (!link.pending.empty()) {
    const Link::Collective oldest = link.pending.front();
    const bool is_late = order.mode == Mode::kLate;
    const bool is_over = is_late ? order.is_over(oldest.receive) : over(oldest.receive, false);
    if (!is_over) break;
    if (!link.pending.empty() && link.pending.front().number == oldest.number) link.pending.pop_front();
  }
  const uint64_t wanted = link.meeting.wanted_by_others();
  for (const Link::Collective& one : std::vector(link.pending.begin(), link.pending.end()))
    if (one.number < wanted) over(one.send, true);
  return !link.pending.empty();
}

}  // namespace tutti::test_device
