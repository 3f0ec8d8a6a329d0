#pragma once

#include <functional>
#include <vector>

#include "actors/gradient_buckets.h"
#include "actors/trainee.h"
#include "tensors/tree.h"

namespace tutti {

// What the microbatches of a step came to on this rank, before anything is reduced.
struct MicrobatchResult {
  double loss_sum = 0;     // of mean losses, each times its weight
  double loss_weight = 0;  // samples or tokens that the losses are means over
  int64_t samples = 0;
  int64_t tokens = 0;
  bool finite = true;
  at::Tensor
      statistics;  // [statistics_size] float32: per microbatch and normalisation layer mean, variance, count
};

// Forward and backward of a rank's batch in `count` parts. Gradients are sums: each part's mean loss is
// weighted by what it is a mean over, and the division by the weight of the whole global batch is the
// optimizer's.
class Microbatches {
 public:
  using Trace = std::function<void(const char* what, int64_t microbatch)>;

  // `buckets` may be null: gradients stay with the parameters.
  Microbatches(Trainee& trainee, GradientBuckets* buckets, int count, uint64_t seed);

  // Parts are as torch.split's: ceil(n / count) samples each, the last ones fewer or none. `step` keys the
  // random draws.
  MicrobatchResult run(const Batch& batch, int64_t step, const Trace& trace);

  // Once the gradients of `run` were used, or the step was skipped: where there are no buckets, they would be
  // added to.
  void end_step();

  int count() const { return count_; }
  int64_t statistics_size() const { return count_ * statistics_stride_; }

  // Takes what every rank gathered, [world, statistics_size], into the layers in rank and microbatch order.
  void apply_statistics(const at::Tensor& gathered);

 private:
  void train(const Batch& part, MicrobatchResult& result);
  void store_statistics(int microbatch, const std::vector<RunningStatistics>& found, at::Tensor& to) const;

  Trainee& trainee_;
  GradientBuckets* buckets_;
  int count_;
  uint64_t seed_;
  std::vector<Layer*> normalising_;  // layers that find statistics, in model order
  int64_t statistics_stride_ = 0;
  std::vector<RunningStatistics> found_;
  ForwardContext context_;
};

}  // namespace tutti
