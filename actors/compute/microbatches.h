#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "actors/compute/exchange.h"
#include "tensors/autograd.h"
#include "tensors/meter.h"
#include "tensors/tree.h"
#include "training/engine/engine.h"
#include "training/evaluation/train_metrics.h"
#include "training/state.h"

namespace tutti {

// What the microbatches of a step came to on this rank, before anything is reduced.
struct MicrobatchResult {
  double loss_sum = 0;     // of mean losses, each times its weight
  double loss_weight = 0;  // samples or tokens that the losses are means over
  int64_t samples = 0;     // of the batch as it came
  int64_t tokens = 0;
  double flops = 0;  // 0 = the model does not say
  bool finite = true;
  std::vector<double> sums;  // listeners' parts of theirs, then those of the train metrics
  // [statistics_size] float32: per microbatch and normalisation layer mean, variance, count. The same tensor
  // every step.
  at::Tensor statistics;
  std::optional<FailedAllocation> shortage;  // why the step is aborted
  int64_t gradient_bytes = 0;                // of an aborted step, when it ran out of memory
  int64_t leftover_bytes = 0;                // that an aborted step took and could not give back
};

// Forward and backward of a rank's batch in `count` parts, with the events from AFTER_DATALOADER to
// AFTER_BACKWARD. Gradients are sums: each part's mean loss is weighted by what it is a mean over, and the
// division by the weight of the whole global batch is the optimizer's.
class Microbatches {
 public:
  // Told where a microbatch ("microbatch") and its backward ("backward") begin.
  using Mark = std::function<void(const char* what, int64_t microbatch)>;

  // `memory_slot` of the meter: whose budget it is held to. State, engine and exchange must outlive this.
  Microbatches(State& state, Engine& engine, Exchange& exchange, int count, int memory_slot = 0);

  // Parts are as torch.split's: ceil(n / count) samples each, the last ones fewer or none. The seed and the
  // step of the state key the random draws.
  //
  // Where memory runs out (c10::OutOfMemoryError) the step is aborted: all that it took is given back, all
  // buckets are reported all the same, and it may be run again as if it had never been.
  MicrobatchResult run(const Batch& batch, const Mark& mark);

  // Again within the step, from BEFORE_TRAIN_BATCH on with the batch as it was then, once `move` has changed
  // the weights; until it has, the views have the gradients of the pass before. To give the weights back is
  // the caller's.
  MicrobatchResult run_again(const std::function<void()>& move, const Mark& mark);

  // Once the gradients of the step were used, or it was skipped: gives back what is held of it.
  void end_step();

  int count() const { return count_; }
  void set_count(int count);
  // Parts of so many samples, `count` of them at most; 0: equal parts.
  void set_size(int64_t samples) { size_ = samples; }
  // Metric::set_share, of the next batches.
  void set_share(double share) { metrics_.set_share(share); }
  int64_t statistics_size() const { return count_ * statistics_stride_; }

  // What MicrobatchResult::sums of all ranks come to: state.metric_values has the metrics, then listeners get
  // theirs.
  void take_sums(std::span<const double> sums);

  // Takes what every rank gathered, [world, statistics_size], into the layers in rank and microbatch order.
  void apply_statistics(const at::Tensor& gathered);

 private:
  MicrobatchResult pass(const Batch& batch, const std::function<void()>& begin, const Mark& mark);
  std::optional<FailedAllocation> try_pass(const std::function<void()>& begin, const Mark& mark,
                                           MicrobatchResult& result);
  void seed_events(uint64_t pass) const;
  void drop_gradients();
  void run_parts(const Mark& mark, MicrobatchResult& result);
  void let_go();
  void abandon(MicrobatchResult& result);
  void train(const std::function<void()>& begins_backward, MicrobatchResult& result);
  void store_statistics(int microbatch, const std::vector<RunningStatistics>& found, at::Tensor& to) const;

  State& state_;
  Engine& engine_;
  Exchange& exchange_;
  int count_;
  int64_t size_ = 0;
  bool extra_pass_ = false;  // the one under way
  int memory_slot_;
  std::vector<Layer*> normalising_;  // layers that find statistics, in model order
  int64_t statistics_stride_ = 0;
  at::Tensor statistics_;
  std::vector<RunningStatistics> found_;
  Batch whole_;  // as BEFORE_TRAIN_BATCH finds it in every pass of the step
  ForwardContext context_;
  TrainMetrics metrics_;
  AutogradSweep sweep_;
};

}  // namespace tutti
