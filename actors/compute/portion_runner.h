#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/compute/pass.h"
#include "data/portions.h"
#include "models/layers/layer.h"
#include "runtime/log.h"
#include "runtime/trace_event.h"
#include "tensors/autograd.h"
#include "training/engine/engine.h"
#include "training/evaluation/train_metrics.h"
#include "training/state.h"

namespace tutti {

// Forward, loss and backward of a portion, with the events from BEFORE_FORWARD to AFTER_BACKWARD. Gradients
// are sums: the mean loss of a portion is weighted by its counted samples or tokens. Where a portion has the
// loss of the whole step, its gradients have the weight of the whole.
class PortionRunner {
 public:
  // Called at the start of a portion (kMicrobatch), and of its backward (kBackward).
  using Mark = std::function<void(TraceKind, int64_t portion)>;

  // All must outlive the runner.
  struct Parts {
    State& state;
    Engine& engine;
    const Mark& mark;
    TrainMetrics& metrics;
    const HostCopies& host;  // of the batch, where it is on a device
    AutogradSweep& sweep;
    ForwardContext& context;
    std::vector<RunningStatistics>& statistics;  // found by the context's layers
  };

  explicit PortionRunner(const Parts& with) : with_(with) {}
  virtual ~PortionRunner() = default;
  PortionRunner(const PortionRunner&) = delete;

  // Of state.batch.
  virtual void run(const Portion& portion, Pass& pass);
  // Frees what is kept from portion to portion.
  virtual void drop() {}

  // Of the mean loss of state.batch, or of a batch of the host: its counted samples or tokens; in Composer
  // its samples.
  double loss_weight() const;
  double loss_weight_of(const Batch& on_host) const;

 protected:
  void begin_backward(const Portion& portion, Pass& pass);
  void note_loss(const Portion& portion, double weight, Pass& pass);

  const Parts with_;

 private:
  double forward();
};

// The factor of a portion's loss in backward.
double backward_factor(const State& state, double weight, const Pass& pass);
// 16 bits have too little range and precision for a loss times its weight.
at::Tensor wide(const at::Tensor& loss);

// As a graph of the device, where that can be (actors/compute/graph_runner.cpp).
std::unique_ptr<PortionRunner> make_graph_runner(const PortionRunner::Parts& with, Log& log);

}  // namespace tutti
