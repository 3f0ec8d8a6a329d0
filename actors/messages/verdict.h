#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tutti {

// What ends every step's plan: small sums over all ranks from which each rank draws the same conclusion. A
// flag is the number of ranks that raise it. Nothing that lasts changes before it is known.
struct Verdict {
  double out_of_memory = 0;  // the step is aborted and done again
  double non_finite = 0;     // the loss is not: the step is skipped
  double overflow = 0;       // the reduced gradients are not: skipped too; of several ranks Sync says so
  double stop = 0;           // after this step, checkpoint and end
  double samples = 0;        // of the global batch
  double tokens = 0;
  double flops = 0;                 // 0 = the model does not say
  double loss_sum = 0;              // mean losses, each times its weight
  double loss_weight = 0;           // what gradients and loss are divided by
  double unused = 0;                // trained parameters that a rank has no gradient of, summed
  double seconds = 0;               // of training; rank 0's alone
  std::vector<double> memory_peak;  // bytes: one's own before the sum, every rank's after it
  std::vector<double> sums;         // what listeners and train metrics sum, as many on every rank

  // One float64 vector whose sum over ranks is the verdict of all.
  at::Tensor encode(int rank, int world) const;
  static Verdict decode(const at::Tensor& sum, int world);
};

}  // namespace tutti
