#include "tests/collectives/mpi/fixture.h"

#include <sched.h>

#include <cstring>
#include <numeric>

namespace tutti {

MpiWorld* MpiTest::world = nullptr;

std::vector<int> MpiTest::everyone() const {
  std::vector<int> ranks(size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::unique_ptr<MpiGroup> MpiTest::make_group() const {
  auto group = std::make_unique<MpiGroup>(*world, clock_, everyone());
  wait_until_ready(*group);
  return group;
}

void MpiTest::wait(const WorkPtr& work) {
  const SystemClock clock;
  const TimePoint deadline = clock.now() + std::chrono::minutes(1);
  while (!work->done()) {
    if (clock.now() > deadline) throw std::runtime_error("still waiting for " + work->header().text());
    sched_yield();
  }
}

at::Tensor MpiTest::placed(Group& group, const at::Tensor& tensor, bool in_window) {
  if (!in_window) return tensor.clone();
  const at::Tensor memory = wait_for_memory(group, static_cast<int64_t>(tensor.nbytes()) + 64);
  const at::Tensor copy = memory.view(tensor.scalar_type()).narrow(0, 0, tensor.numel());
  if (tensor.numel() > 0) std::memcpy(copy.data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  return copy;
}

}  // namespace tutti
