#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace tutti {

// The sum over ranks at a step's end that decides whether the step counts. Every rank draws the same
// conclusion from the verdict, and no lasting state changes before. A flag is the number of ranks that raise
// the flag.
struct Verdict {
  double out_of_memory = 0;  // the step is aborted and retried
  double non_finite = 0;     // the loss is not finite: the step is skipped
  double overflow = 0;  // reduced gradients are not finite: the step is skipped; known once all are reduced
  double stop = 0;      // after this step, checkpoint and end
  double samples = 0;   // of the global batch
  double tokens = 0;
  double flops = 0;                 // 0 = unknown
  double loss_sum = 0;              // mean losses times their weights
  double loss_weight = 0;           // the divisor of gradients and loss
  double unused = 0;                // trained parameters without a gradient, summed over ranks
  double seconds = 0;               // of training, on rank 0
  std::vector<double> memory_peak;  // bytes: this rank's before the sum, then every rank's
  std::vector<double> sums;         // of listeners and train metrics; the same number on every rank

  // Where batches are cut into grains (sharding/rank_share.h): of each grain loss_sum, loss_weight, flops and
  // sums; before the sum those of this rank's grains, and zeros. Decoding adds the rows in grain order.
  std::vector<double> grains;

  // As a float64 vector. The sum of the vectors of all ranks is decoded into the verdict.
  at::Tensor encode(int rank, int world) const;
  // The numbers of the vector, and of a row of `grains`.
  static int64_t numbers(int world, int64_t sums, int64_t grains = 0);
  static int64_t numbers_of_grain(int64_t sums);
  static Verdict decode(const at::Tensor& sum, int world, int64_t grains = 0);

 private:
  void add_grains(std::span<const double> rows);
};

}  // namespace tutti
