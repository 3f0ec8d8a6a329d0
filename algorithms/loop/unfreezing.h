#pragma once

#include <string>
#include <vector>

#include "models/zoo/catalog.h"
#include "training/engine/algorithm.h"

namespace tutti {

// [[model.unfreeze]]: parameters require no gradient until their time; then they are trained, from the next
// step on, with a new state of the optimizer. Frozen parameters are not reduced over the ranks. A resumed
// run freezes by its time, so there is no state to save.
class Unfreezing final : public Algorithm {
 public:
  // `sections`: resolved tables of LaterTrained.
  explicit Unfreezing(const Setting& sections);

  std::string name() const override { return "Unfreezing"; }
  Needs needs() const override;
  // Throws UserError if a pattern matches no trained parameter, or nothing is trained at first.
  void require(const State& state) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  // The time of a parameter by its names after and before surgery; none: trained from the start.
  const Time* time_of(const NamedParameter& named) const;
  bool is_trained(const NamedParameter& named, const State& state) const;

  std::vector<LaterTrained> later_;
};

}  // namespace tutti
