#include "tensors/cuda/graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <exception>
#include <functional>

namespace tutti {
namespace {

void ignoring_errors(const std::function<void()>& work) noexcept try {
  work();
} catch (const std::exception&) {
}

// Ends a recording also where CUDA refuses it, which work that waits for the device causes. libtorch's graph
// throws then before it has ended those of its allocators and of the generator: blocks that other streams use
// would never be free again, and emptying the cache and drawing numbers would be errors.
class Recording final : public at::cuda::CUDAGraph {
 public:
  void end() try { capture_end(); } catch (...) {
    if (!capture_ended_) abandon();
    throw;
  }

 private:
  // Each part of it may have been done.
  void abandon() {
    namespace device = c10::cuda::CUDACachingAllocator;
    at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
    ignoring_errors([&] { device::endAllocateToPool(capture_dev_, mempool_id_); });
    ignoring_errors([&] { host.end_allocate_to_pool(mempool_id_); });
    ignoring_errors([&] { device::releasePool(capture_dev_, mempool_id_); });
    ignoring_errors([&] { host.release_pool(mempool_id_); });
    for (auto& [generator, numbers] : captured_generator_states_) generator->capturing_ = false;
  }
};

// Threads of other actors may do meanwhile what a recording forbids, so only this thread's calls are checked.
class CudaGraph final : public DeviceGraph {
 public:
  void begin() override { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph_.end(); }
  void launch() override { graph_.replay(); }

 private:
  Recording graph_;
};

}  // namespace

DeviceGraph* make_cuda_graph() { return new CudaGraph; }

}  // namespace tutti
