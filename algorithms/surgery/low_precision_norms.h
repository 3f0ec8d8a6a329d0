#pragma once

#include "algorithms/surgery/options.h"
#include "models/layers/norm.h"
#include "training/engine/algorithm.h"
#include "training/precision.h"

namespace tutti {

// A LayerNorm that computes in autocast's dtype: input, weight, bias and result are cast to that dtype; sums
// are float32. Without autocast, an ordinary LayerNorm. Adopts the parameters of its predecessor. composer's
// LPLayerNorm.
class LPLayerNorm final : public Layer {
 public:
  LPLayerNorm(const LayerNorm& old, bool on_cpus);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LPLayerNorm"; }

 private:
  LayerNormOptions options_;
  bool on_cpus_;
  Parameter* weight_;
  Parameter* bias_;
};

// The same for GroupNorm. composer's LPGroupNorm.
class LPGroupNorm final : public Layer {
 public:
  LPGroupNorm(const GroupNorm& old, bool on_cpus);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LPGroupNorm"; }

 private:
  GroupNormOptions options_;
  bool on_cpus_;
  Parameter* weight_;
  Parameter* bias_;
};

// Replaces every LayerNorm (GroupNorm) of a model by a low-precision norm with the old norm's parameters,
// before or after `materialise`. Returns the number of replaced layers; 0 if the precision is neither
// amp_fp16 nor amp_bf16. With `on_cpus` = false, as in Composer, the layers compute as before on a CPU.
// composer.functional.apply_low_precision_layernorm and apply_low_precision_groupnorm.
int apply_low_precision_layernorm(Layer& model, const Precision& precision, bool on_cpus = true);
int apply_low_precision_groupnorm(Layer& model, const Precision& precision, bool on_cpus = true);

// apply_low_precision_layernorm at INIT or AFTER_LOAD, after all other algorithms.
// composer.algorithms.LowPrecisionLayerNorm.
class LowPrecisionLayerNorm final : public Algorithm {
 public:
  explicit LowPrecisionLayerNorm(Event apply_at = Event::kInit);  // throws UserError for other events

  std::string name() const override { return "LowPrecisionLayerNorm"; }
  Needs needs() const override { return {.last = true}; }
  bool match(Event event, const State&) const override { return event == apply_at_; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  Event apply_at_;
};

// apply_low_precision_groupnorm at INIT or AFTER_LOAD. composer.algorithms.LowPrecisionGroupNorm.
class LowPrecisionGroupNorm final : public Algorithm {
 public:
  explicit LowPrecisionGroupNorm(Event apply_at = Event::kInit);  // throws UserError for other events

  std::string name() const override { return "LowPrecisionGroupNorm"; }
  bool match(Event event, const State&) const override { return event == apply_at_; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  Event apply_at_;
};

}  // namespace tutti
