#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "actors/compute/exchange.h"
#include "actors/compute/pass.h"
#include "actors/compute/portion_runner.h"
#include "data/portions.h"
#include "models/layers/statistics_rows.h"
#include "tensors/autograd.h"
#include "tensors/tree.h"
#include "training/engine/engine.h"
#include "training/evaluation/train_metrics.h"
#include "training/optimizers/closure.h"
#include "training/state.h"
#include "training/step_rows.h"

namespace tutti {

// Forward and backward of a rank's batch in portions, with the events from AFTER_DATALOADER to
// AFTER_BACKWARD.
class Passes {
 public:
  using Mark = PortionRunner::Mark;

  // Memory is limited by the budget of the state's memory slot. All references must outlive this. `mark`:
  // also called for portions of find_rows.
  Passes(
      State& state, Engine& engine, Exchange& exchange, const PortionPlan& plan,
      Mark mark = [](TraceKind, int64_t) {});

  // From now on portions are graphs of the device, where that can be.
  void use_graphs(Log& log) { runner_ = make_graph_runner(parts(), log); }

  // Begins an attempt at a step. `parts`: this rank's parts of the global batch, which lie one behind the
  // other in `batch`. `on_host`: the same batch, where `batch` is on a device.
  void begin_attempt(const Batch& batch, const std::vector<Portion>& parts, const Batch& on_host = {});

  // A pass of the attempt. Random draws are keyed by the seed and step of the state, and in a portion by the
  // place of its first sample in the global batch.
  //
  // An extra pass calls `move`, which changes the weights and may read the gradients of the pass before, then
  // runs from BEFORE_TRAIN_BATCH on with the same batch. The caller restores the weights.
  //
  // If memory runs out (c10::OutOfMemoryError), the attempt is aborted: its memory is freed, Sync runs the
  // sums that are missing over numbers that nobody reads, and another attempt may begin. The result is valid
  // until the next pass.
  Pass& run(const Closure::Move& move = {});

  // Call once for a pass that has not run out of memory, before its verdict. Waits for a device's numbers.
  void read_numbers();

  // Frees the memory of the step, after its gradients are used or the step is skipped.
  void free_step();

  const PortionPlan& plan() const { return cut_.plan; }
  void set_plan(const PortionPlan& plan);
  int64_t statistics_size() const { return cut_.plan.count * rows_.size(); }
  int64_t sums() const { return engine_.reductions() + std::ssize(metrics_.sums()); }  // of Verdict::sums
  double loss_weight_of(const Batch& on_host) const { return runner_->loss_weight_of(on_host); }

  // `sums`: Verdict::sums over all ranks. Sets state.metric_values, then calls listeners.
  void use_sums(std::span<const double> sums, bool with_listeners);

  // Applies the statistics of all ranks, [world, statistics_size], to the layers, in the order of ranks and
  // portions, or of grains.
  void apply_statistics(const at::Tensor& gathered);

 private:
  // The rank's samples of the global batch, or a grain. From BEFORE_TRAIN_BATCH on the part has the changes
  // of events.
  struct Part {
    Batch batch;
    int64_t first = 0;          // place of its first sample in the global batch
    double kept_samples = 1.0;  // State::kept_samples
  };
  struct Attempt {
    std::vector<Part> parts;
    int passes = 0;  // begun
  };
  // How batches are cut into parts, and parts into portions. A grain is one portion.
  struct Cut {
    const RankTopology place;  // of this rank, without a current part
    const int64_t global_batch;
    PortionPlan plan = {};

    std::vector<Portion> portions(std::size_t index, const Part& part) const;
    int64_t portion_size(const Part& part) const;
  };

  PortionRunner::Parts parts();
  void begin_pass();
  void train_batch(const Closure::Move& move, bool first_pass);
  Part run_events(std::size_t index, bool first_pass);
  bool find_rows(const std::vector<Part>& parts);
  void train(const Part& part, const Portion& portion);
  void begin_forward(const Part& part, const Portion& portion);
  void store_statistics(int64_t portion);
  void begin_at(int64_t first_sample);
  void set_part(std::size_t index, const Part& part);
  void abandon();

  State& state_;
  Engine& engine_;
  Exchange& exchange_;
  Mark mark_;
  Cut cut_;
  Attempt attempt_;
  HostCopies host_;  // of the batch as it came
  std::optional<Pass> pass_;
  at::Tensor statistics_;  // of every pass
  StatisticsRows rows_;
  std::optional<StepRows> rows_of_step_;  // none: the model does not compare samples of a whole step
  ForwardContext context_;
  std::vector<RunningStatistics> found_;
  TrainMetrics metrics_;
  AutogradSweep sweep_;
  std::unique_ptr<PortionRunner> runner_;
};

}  // namespace tutti
