#include "tests/device/graph.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

thread_local Graph* now = nullptr;

int next_pool() {
  static std::atomic<int> pools{0};
  return ++pools;
}

}  // namespace

Graph* recording() { return now; }

void refuse_within_graph(const std::string& what) {
  TORCH_CHECK(!now, what, " is not permitted while a graph is recorded");
}

Graph::Graph() : pool_(next_pool()) {}

Graph::~Graph() {
  const Lock lock(state().mutex);
  state().memory.release_pool(pool_);
}

// Kernels before are run first, since they would see what those of the graph write meanwhile.
void Graph::begin() {
  device_ = current_device();
  TORCH_CHECK(current_stream(device_) != device_ * kStreamsOfADevice, "graphs need a stream of their own");
  refuse_within_graph("another graph");
  Lock lock(state().mutex);
  state().order.run_all(lock);
  now = this;
}

void Graph::end() {
  now = nullptr;
  for (auto one = saved_.rbegin(); one != saved_.rend(); ++one)
    std::memcpy(one->at, one->bytes.data(), one->bytes.size());
  saved_.clear();
  const Lock lock(state().mutex);
  state().memory.fill_pool(pool_, 0xFF);
}

void Graph::launch() {
  State& s = state();
  Lock lock(s.mutex);
  ++s.order.counters.graphs;
  for (const Recorded& one : kernels_) {
    const Kernel kernel = s.order.launch(one.name, current_stream(device_));
    for (const Use& use : one.uses) s.memory.note(kernel, use.bytes.begin, use.bytes.end, use.write, pool_);
    s.order.submit(lock, kernel, [work = one.work] {
      const RunningKernel none(nullptr);  // scratch is the host's
      work();
    });
  }
}

std::vector<at::Tensor> Graph::run(const std::string& name, const std::vector<Use>& uses, Aliases& aliases,
                                   const Compute& compute) {
  for (const Use& one : uses)
    if (one.write) save(one.bytes);
  const int stream = current_stream(device_);
  const Kernel kernel{&name, stream, 0, {}};
  std::vector<at::Tensor> results;
  {
    const RunningKernel running(&kernel);
    results = compute();
  }
  aliases.follow_resized(device_);
  std::vector<at::Tensor> fronts, places;
  Recorded recorded{name, uses, {}};
  for (const at::Tensor& one : results) {
    fronts.push_back(aliases.back(one, device_));
    places.push_back(one.defined() ? Aliases().of(fronts.back()) : at::Tensor());
    recorded.uses.push_back({extent(fronts.back()), true});
  }
  recorded.work = [compute, places] {
    const auto again = compute();
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i].defined() && places[i].data_ptr() != again[i].data_ptr()) places[i].copy_(again[i]);
  };
  kernels_.push_back(std::move(recorded));
  return fronts;
}

// Before the first write, of the memory of others.
void Graph::save(const Extent& bytes) {
  if (bytes.begin == bytes.end) return;
  {
    const Lock lock(state().mutex);
    const Block* const block = state().memory.block_of(bytes.begin);
    if (block && block->pool == pool_) return;
  }
  auto* const at = static_cast<char*>(shadow(bytes.begin));
  saved_.push_back({at, {at, at + (bytes.end - bytes.begin)}});
}

}  // namespace tutti::test_device
