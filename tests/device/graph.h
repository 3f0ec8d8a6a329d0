#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tensors/kernels/graph.h"
#include "tests/device/aliases.h"
#include "tests/device/test_device.h"

namespace tutti::test_device {

// A graph of the test device. While one is recorded, kernels run, since their results must have a size and a
// place, but in the end memory that is not the graph's has what it had before, and the graph's own has noise.
// A launch runs all kernels again, into the same memory, each noted and ordered as a kernel of its own.
//
// Stricter than CUDA: copies between host and device, and events, are errors within a graph.
class Graph final : public DeviceGraph {
 public:
  Graph();
  ~Graph() override;
  Graph(const Graph&) = delete;

  void begin() override;
  void end() override;
  void launch() override;

  // Runs `compute` on this thread, now and at each launch, as the kernel `name`. Its results are CPU tensors,
  // which `aliases` makes tensors of the device, the same at each launch.
  using Compute = std::function<std::vector<at::Tensor>()>;
  struct Use {
    Extent bytes;
    bool write;
  };
  std::vector<at::Tensor> run(const std::string& name, const std::vector<Use>& uses, Aliases& aliases,
                              const Compute& compute);
  int pool() const { return pool_; }

 private:
  struct Recorded {
    std::string name;
    std::vector<Use> uses;
    std::function<void()> work;
  };
  struct Saved {
    char* at;  // in the shadow
    std::vector<char> bytes;
  };

  void save(const Extent& bytes);

  const int pool_;
  int device_ = 0;
  std::vector<Recorded> kernels_;
  std::vector<Saved> saved_;
};

// That this thread records; else null.
Graph* recording();

// Throws if this thread records a graph: `what` cannot be part of one.
void refuse_within_graph(const std::string& what);

}  // namespace tutti::test_device
