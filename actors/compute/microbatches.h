#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "actors/compute/exchange.h"
#include "models/layers/statistics_rows.h"
#include "tensors/autograd.h"
#include "tensors/meter.h"
#include "tensors/tree.h"
#include "training/engine/engine.h"
#include "training/evaluation/train_metrics.h"
#include "training/state.h"

namespace tutti {

// The results of a pass on this rank, before any reduction.
struct MicrobatchResult {
  double loss_sum = 0;     // of mean losses times their weights
  double loss_weight = 0;  // samples or tokens that the mean losses are over
  int64_t samples = 0;     // of the batch, before listeners change it
  int64_t tokens = 0;
  double flops = 0;  // 0 = unknown
  bool finite = true;
  std::vector<double> sums;  // this rank's numbers of listeners, then of train metrics
  // [statistics_size] float32: a row of StatisticsRows for each microbatch. Overwritten in the next pass.
  at::Tensor statistics;
  std::optional<FailedAllocation> failed_allocation;  // why the step is aborted; else nullopt
  int64_t gradient_bytes = 0;                         // in an aborted step, when memory ran out
  int64_t leftover_bytes = 0;                         // not freed after an aborted step
};

// Forward and backward of a rank's batch in `count` parts, with the events from AFTER_DATALOADER to
// AFTER_BACKWARD. Gradients are sums: the mean loss of a part is weighted by its number of samples or tokens.
// The optimizer divides them by the weight of the global batch.
class Microbatches {
 public:
  // Called at the start of a microbatch (kMicrobatch) and of its backward (kBackward).
  using Mark = std::function<void(TraceKind, int64_t microbatch)>;

  // Memory is limited by the budget of the state's memory slot. All references must outlive this.
  Microbatches(State& state, Engine& engine, Exchange& exchange, int count);

  // Parts are those of torch.split: ceil(n / count) samples each, the last ones fewer or none. Random draws
  // are keyed by the seed and step of the state, and in
  // a microbatch by the place of its first sample in the global batch.
  //
  // If memory runs out (c10::OutOfMemoryError), the step is aborted: its memory is freed, its buckets are
  // reported as zeros, and the step may be run again from the start.
  //
  // `first_sample`: place of the batch's first sample in the global batch.
  MicrobatchResult run(const Batch& batch, int64_t first_sample, const Mark& mark);

  // An extra pass of the step: calls `move`, which changes the weights and may read the gradients of the pass
  // before, then runs from BEFORE_TRAIN_BATCH on with the same batch. The caller restores the weights.
  MicrobatchResult run_again(const std::function<void()>& move, const Mark& mark);

  // Frees the memory of the step, after its gradients are used or the step is skipped.
  void end_step();

  int count() const { return count_; }
  void set_count(int count);
  // Parts of `samples` samples, at most `count` parts; 0: equal parts.
  void set_size(int64_t samples) { size_ = samples; }
  int64_t statistics_size() const { return count_ * rows_.size(); }
  // Numbers of MicrobatchResult::sums.
  int64_t sums() const { return engine_.reductions() + std::ssize(metrics_.sums()); }

  // `sums`: MicrobatchResult::sums over all ranks. Sets state.metric_values, then calls listeners.
  void use_sums(std::span<const double> sums, bool of_listeners_too);

  // Applies the statistics of all ranks, [world, statistics_size], to the layers in rank and microbatch
  // order.
  void apply_statistics(const at::Tensor& gathered);

 private:
  MicrobatchResult pass(const Batch& batch, const std::function<void()>& begin, const Mark& mark);
  std::optional<FailedAllocation> try_pass(const std::function<void()>& begin, const Mark& mark,
                                           MicrobatchResult& result);
  void seed_events(uint64_t pass) const;
  void drop_gradients();
  void begin_part(int64_t first_sample);  // place of its first sample in the global batch
  void run_parts(const Mark& mark, MicrobatchResult& result);
  void seed_part() const;
  void clear_state();
  void abandon(MicrobatchResult& result);
  void train(const std::function<void()>& begins_backward, MicrobatchResult& result);
  void store_statistics(int microbatch, at::Tensor& to);

  State& state_;
  Engine& engine_;
  Exchange& exchange_;
  int count_;
  int64_t size_ = 0;
  int64_t first_sample_ = 0;
  bool extra_pass_ = false;  // the current pass is an extra one
  StatisticsRows rows_;
  at::Tensor statistics_;
  std::vector<RunningStatistics> found_;
  Batch whole_;  // the batch at BEFORE_TRAIN_BATCH, in every pass of the step
  ForwardContext context_;
  TrainMetrics metrics_;
  AutogradSweep sweep_;
};

}  // namespace tutti
