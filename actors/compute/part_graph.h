#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/layers/layer.h"
#include "runtime/log.h"
#include "tensors/autograd.h"
#include "tensors/kernels/graph.h"
#include "tensors/tree.h"
#include "training/state.h"

namespace tutti {

// Forward, loss and backward of a microbatch as a graph of the device: the host launches the graph with one
// call ([train] cuda_graphs). No listener may act on the events between. Results have the bits of the work
// without a graph.
//
// The work is recorded once kWarmUps microbatches in a row were alike: libraries choose their kernels in the
// first microbatches. The device reads the inputs that change from step to step: the batch, the factor of the
// loss, the keys of dropout's masks. Work that needs other numbers of the host is refused, once, with a
// warning, and done without a graph from then on.
class PartGraph {
 public:
  static constexpr int kWarmUps = 3;
  static constexpr int64_t kMostMasks = 1024;

  // Gradient of the root of backward, a scalar like `loss`: the factor.
  using Factor = std::function<at::Tensor(const at::Tensor& loss)>;
  // Computes state.outputs, state.loss, statistics and gradients from state.batch.
  using Work = std::function<void(const Factor& factor)>;

  // All references must outlive this. `found`: where the context's layers put statistics.
  PartGraph(State& state, ForwardContext& context, std::vector<RunningStatistics>& statistics,
            AutogradSweep& sweep, Log& log);

  // Does the work on state.batch, by the graph; false if the caller must do the work. Results lie in the
  // graph's memory, and are valid until the next call; gradients are added to existing gradients. `alone`: no
  // other microbatch of the step adds to the gradients. Throws c10::OutOfMemoryError where recording does.
  bool run(double factor, bool alone, const Work& work);

  // The work was refused: not to be called again.
  bool refuses() const { return refused_; }

  // In place of `run`, where somebody acts between: "LabelSmoothing acts at before_loss". Warns once of
  // listeners that delay a graph for long.
  void wait_for(const std::string& who);

  // Frees the graph's memory. Its work is over.
  void drop();

 private:
  struct Leaf {
    std::string name;
    Shape sizes, strides;
    at::ScalarType dtype;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  // What the recorded work depends on.
  struct Likeness {
    std::vector<Leaf> batch;
    std::vector<const void*> addresses;  // of parameters, buffers and layers
    std::vector<bool> trained;
    friend bool operator==(const Likeness&, const Likeness&) = default;
  };

  Likeness likeness() const;
  bool record(const Work& work);
  void record_work(const Work& work);
  at::Tensor key_of_mask(const std::string& name);
  void forget_attempt();
  void refuse(const std::string& why);
  void fill(double factor);
  void give(bool alone);

  State& state_;
  ForwardContext& context_;
  std::vector<RunningStatistics>& found_;
  AutogradSweep& sweep_;
  Log& log_;
  bool refused_ = false;
  int waited_ = 0;  // microbatches
  Likeness seen_;   // of the last microbatches that were no launches
  int alike_ = 0;   // their number

  std::unique_ptr<DeviceGraph> graph_;  // null: nothing is recorded
  Likeness recorded_;
  Batch batch_;                     // what the graph reads
  at::Tensor numbers_;              // int64 [1 + 2 * kMostMasks]: the factor's bits, then keys
  std::vector<std::string> masks_;  // their names, in the order of the keys
  Outputs outputs_;                 // what the graph writes
  at::Tensor loss_;
  std::vector<RunningStatistics> statistics_;
  std::vector<at::Tensor> gradients_;  // by parameter
};

}  // namespace tutti
