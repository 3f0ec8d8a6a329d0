#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "actors/compute/exchange.h"
#include "actors/compute/part_graph.h"
#include "actors/messages/verdict.h"
#include "models/layers/statistics_rows.h"
#include "tensors/autograd.h"
#include "tensors/late_numbers.h"
#include "tensors/memory/meter.h"
#include "tensors/tree.h"
#include "training/engine/engine.h"
#include "training/evaluation/train_metrics.h"
#include "training/optimizers/closure.h"
#include "training/state.h"
#include "training/step_rows.h"

namespace tutti {

// The results of a pass on this rank, before any reduction.
struct MicrobatchResult {
  // Samples and tokens are counted before listeners change the batch. Fields that need all microbatches are
  // not set.
  Verdict verdict;
  // [statistics_size] float32: a row of StatisticsRows for each microbatch. Overwritten in the next pass.
  at::Tensor statistics;
  std::optional<FailedAllocation> failed_allocation;  // why the step is aborted; else nullopt
  int64_t gradient_bytes = 0;                         // in an aborted step, when memory ran out
  int64_t leftover_bytes = 0;                         // not freed after an aborted step
};

// Forward and backward of a rank's batch in `count` parts, with the events from AFTER_DATALOADER to
// AFTER_BACKWARD. Gradients are sums: the mean loss of a part is weighted by its number of samples or tokens.
// The optimizer divides the sums by the weight of the global batch. Where each part has the loss of the whole
// step (Model::compares_step), its gradients have the weight of the whole.
class Microbatches {
 public:
  // Called at the start of a microbatch (kMicrobatch), also in find_rows, and of its backward (kBackward).
  using Mark = std::function<void(TraceKind, int64_t microbatch)>;

  // Memory is limited by the budget of the state's memory slot. All references must outlive this.
  Microbatches(
      State& state, Engine& engine, Exchange& exchange, int count, Mark mark = [](TraceKind, int64_t) {});

  // From now on microbatches are graphs of the device, where that can be.
  void use_graphs(Log& log) { graph_.emplace(state_, context_, found_, sweep_, log); }

  // Begins an attempt at a step. `first_sample`: place of the batch's first sample in the global batch.
  // `on_host`: the same batch, where `batch` is on a device.
  void begin_attempt(const Batch& batch, int64_t first_sample, const Batch& on_host = {});

  // A pass of the attempt. Parts as of torch.split: ceil(n / count) samples each, the last parts fewer or
  // none. Random draws are keyed by the seed and step of the state, and in a microbatch by the place of its
  // first sample in the global batch.
  //
  // An extra pass calls `move`, which changes the weights and may read the gradients of the pass before, then
  // runs from BEFORE_TRAIN_BATCH on with the same batch. The caller restores the weights.
  //
  // If memory runs out (c10::OutOfMemoryError), the attempt is aborted: its memory is freed, its buckets are
  // reported as zeros, and another attempt may begin. On a device the host does not wait: read_numbers sets
  // the loss, its finiteness, train metrics and statistics. The result is valid until the next pass.
  MicrobatchResult& run(const Closure::Move& move = {});

  // Numbers of the pass that a device computes.
  LateNumbers& numbers() { return numbers_; }
  // Copies of the losses of the microbatches, on a device.
  const std::vector<at::Tensor>& losses() const { return losses_; }
  // Call once for a pass that has not run out of memory. Waits for the numbers.
  void read_numbers();

  // Frees the memory of the step, after its gradients are used or the step is skipped.
  void end_step();

  int count() const { return count_; }
  void set_count(int count);
  // Parts of `samples` samples, at most `count` parts; 0: equal parts.
  void set_size(int64_t samples) { size_ = samples; }
  // The number of parts that have samples, of a batch of so many.
  int64_t parts_of(int64_t samples) const;
  int64_t statistics_size() const { return count_ * rows_.size(); }
  // Numbers of Verdict::sums. The weight of the mean loss of a batch: its counted samples or tokens; in
  // Composer its samples.
  double loss_weight_of(const Batch& on_host) const;
  int64_t sums() const { return engine_.reductions() + std::ssize(metrics_.sums()); }

  // `sums`: Verdict::sums over all ranks. Sets state.metric_values, then calls listeners.
  void use_sums(std::span<const double> sums, bool with_listeners);

  // Applies the statistics of all ranks, [world, statistics_size], to the layers in rank and microbatch
  // order.
  void apply_statistics(const at::Tensor& gathered);

 private:
  void begin_result();
  void begin_batch();
  void begin_again(const Closure::Move& move);
  void begin_part(int64_t first_sample);  // place of its first sample in the global batch
  int64_t part_size(int64_t samples) const;
  bool find_rows(const Batch& whole, int64_t part);
  void begin_forward(const Batch& whole, int64_t first, int64_t size, int microbatch);
  void train_part(const Batch& whole, int64_t first, int64_t part, int microbatch);
  void compute_part(int microbatch);
  bool launch_part(int microbatch);
  std::string listener() const;
  void begin_backward(int microbatch);
  void note_loss(double weight);
  double forward();
  void seed_events(uint64_t pass) const;
  void seed_part() const;
  void drop_gradients();
  void clear_state();
  void abandon();
  double loss_weight() const;  // of the microbatch
  double backward_weight(double loss_weight) const {
    return rows_of_step_ ? rows_of_step_->loss_weight() : loss_weight;
  }
  void store_statistics(int microbatch);

  State& state_;
  Engine& engine_;
  Exchange& exchange_;
  Mark mark_;
  int count_;
  int64_t size_ = 0;
  Batch batch_;      // of the attempt; from BEFORE_TRAIN_BATCH on as changed by events
  HostCopies host_;  // of the batch as it came
  int64_t first_sample_ = 0;
  int passes_ = 0;  // begun in the attempt
  bool in_backward_ = false;
  StatisticsRows rows_;
  std::optional<StepRows> rows_of_step_;  // none: the model does not compare samples of a whole step
  at::Tensor statistics_;
  std::vector<RunningStatistics> found_;
  ForwardContext context_;
  MicrobatchResult result_;  // of the pass
  LateNumbers numbers_;
  std::vector<at::Tensor> losses_;  // see losses()
  TrainMetrics metrics_;
  AutogradSweep sweep_;
  std::optional<PartGraph> graph_;
};

}  // namespace tutti
