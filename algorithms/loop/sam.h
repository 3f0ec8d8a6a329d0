#pragma once

#include "algorithms/loop/options.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Sharpness-aware minimisation: every `interval`th step uses the gradients at w + rho g / (|g| + epsilon),
// with the L2 norm of all gradients together. The second gradient needs a second pass over the batch. Foret
// et al. 2021, arXiv:2010.01412. composer.algorithms.SAM.
class SAM final : public Algorithm {
 public:
  explicit SAM(const SAMOptions& options) : options_(options) {}

  std::string name() const override { return "SAM"; }
  Needs needs() const override { return {.closure = true}; }
  bool match(Event event, const State&) const override { return event == Event::kAfterLoad; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  double slope(const State& state) const;

  SAMOptions options_;
};

}  // namespace tutti
