#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/augmentation/options.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The common part of MixUp and CutMix. At BEFORE_FORWARD every sample of a microbatch is mixed with a
// partner, another sample of the microbatch. Then either targets are mixed at BEFORE_LOSS (one-hot or dense),
// or losses at BEFORE_BACKWARD: the loss against the sample's target and the loss against the partner's. The
// partner's target includes other algorithms' changes so far; Composer takes the target of BEFORE_FORWARD.
class SampleMixing : public Algorithm {
 public:
  explicit SampleMixing(SampleMixingOptions options) : options_(std::move(options)) {}

  Needs needs() const override { return {.interpolates_loss = options_.interpolate_loss}; }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 protected:
  struct Mixed {
    at::Tensor input;
    double share = 0.0;  // of the partners, in targets and losses
  };
  // Mixes the inputs with the inputs of the partners [N].
  virtual Mixed mix(const State& state, const at::Tensor& input, const at::Tensor& partners) = 0;
  // Mixes the targets of the batch for BEFORE_LOSS.
  virtual at::Tensor mix_targets(const State& state, const at::Tensor& target,
                                 const at::Tensor& partner_target) const;
  const SampleMixingOptions& options() const { return options_; }

 private:
  std::string kept_targets() const { return name() + "/targets"; }
  at::Tensor partner_target(const State& state) const;

  SampleMixingOptions options_;
  // Of the microbatch, from BEFORE_FORWARD on. No tensor: an aborted attempt must give back its memory.
  std::vector<int64_t> partners_;
  double share_ = 0.0;
};

}  // namespace tutti
