#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/messages/verdict.h"
#include "tensors/late_numbers.h"
#include "tensors/memory/ledger.h"
#include "tensors/memory/meter.h"

namespace tutti {

// A pass of this rank over its batch, forward and backward, before any sum over ranks. A step has one pass,
// and more if a closure asks for them.
struct Pass {
  Pass() = default;
  Pass(const Pass&) = delete;  // `numbers` write into the pass

  // Samples and tokens are counted before listeners change the batch. On a device `numbers` has the loss and
  // the sums until they are read.
  Verdict verdict;
  // Float32, a row of StatisticsRows for each portion; undefined without statistics. Memory that the next
  // pass uses too.
  at::Tensor statistics;
  LateNumbers numbers;
  // Where batches are cut into grains: for each of this rank's grains a row of Verdict::grains, without the
  // sums of train metrics.
  struct Grain {
    double loss_sum = 0, loss_weight = 0, flops = 0;
    std::vector<double> listeners = {};
  };
  std::vector<Grain> grains;
  std::vector<at::Tensor> losses;  // of the portions; on a device only, where they are checked
  // The weight of the loss of the whole step where each portion has that loss (Model::compares_step).
  std::optional<double> step_weight;
  bool in_backward = false;
  bool skips_on_device = false;  // the device's own conclusion, once `numbers` are read

  std::optional<FailedAllocation> failed_allocation;  // memory ran out: all ranks abort the attempt
  HeldBytes held;  // when memory ran out, beside what the ledger has: gathered parameters, own gradients
  int64_t leftover_bytes = 0;  // still held after the pass was abandoned
};

}  // namespace tutti
