#include "algorithms/loop/unfreezing.h"

#include <algorithm>

#include "algorithms/loop/lasting_tensors.h"
#include "training/optimizers/parameter_groups.h"
#include "training/state.h"

namespace tutti {

Unfreezing::Unfreezing(const Setting& sections) {
  for (const Setting& section : sections.array()) later_.push_back(LaterTrained::kind().read(section));
  set_section(sections);
}

Needs Unfreezing::needs() const {
  return {.excludes = {{"LayerFreezing", "it freezes the layers that [[model.unfreeze]] trains later"}}};
}

const Time* Unfreezing::time_of(const NamedParameter& named) const {
  const auto later = std::ranges::find_if(later_, [&](const LaterTrained& parameters) {
    return matches_any(*parameters.match, named.name) ||
           matches_any(*parameters.match, named.parameter->origin);
  });
  return later == later_.end() ? nullptr : &*later->at;
}

bool Unfreezing::is_trained(const NamedParameter& named, const State& state) const {
  const Time* at = time_of(named);
  return !at || has_passed(*at, state);
}

void Unfreezing::require(const State& state) const {
  for (const LaterTrained& later : later_) {
    for (const std::string& pattern : *later.match)
      if (std::ranges::none_of(state.parameters, [&](const NamedParameter& named) {
            return named.parameter->trained && (matches_pattern(pattern, named.name) ||
                                                matches_pattern(pattern, named.parameter->origin));
          }))
        later.match.fail("no parameter that is trained matches " + pattern);
    warn_of_late_start(*this, "at", *later.at, Event::kBatchEnd, state);
  }
  if (std::ranges::none_of(state.parameters, [&](const NamedParameter& named) {
        return named.parameter->trained && is_trained(named, state);
      }))
    fail("no parameter is left to train at first");
}

bool Unfreezing::match(Event event, const State&) const {
  return event == Event::kFitStart || event == Event::kBatchEnd || event == Event::kEpochEnd;
}

// The views of a share are tensors of their own.
void Unfreezing::apply(Event, State& state, Logger&) {
  for (std::size_t p = 0; p < state.parameters.size(); ++p) {
    const NamedParameter& named = state.parameters[p];
    if (!named.parameter->trained || !time_of(named)) continue;
    const bool trained = is_trained(named, state);
    named.parameter->tensor.set_requires_grad(trained);
    state.views.at(p).tensor.set_requires_grad(trained);
    if (!trained) named.parameter->tensor.mutable_grad() = at::Tensor();
  }
}

}  // namespace tutti
