#include "tensors/cuda/graph.h"

#include <ATen/cuda/CUDAGraph.h>

namespace tutti {
namespace {

// Threads of other actors may do meanwhile what a recording forbids, so only this thread's calls are checked.
class CudaGraph final : public DeviceGraph {
 public:
  void begin() override { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph_.capture_end(); }
  void launch() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

DeviceGraph* make_cuda_graph() { return new CudaGraph; }

}  // namespace tutti
