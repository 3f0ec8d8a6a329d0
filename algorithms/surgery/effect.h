#pragma once

#include <string>
#include <unordered_set>

#include "models/layers/layer.h"

namespace tutti {

struct State;

// Effects of surgery: finds layers that are wrapped already, and warns if no layer was changed.

// The layers inside wrappers of a kind, at any depth. Surgery that wraps layers skips them.
template <class Wrapper>
std::unordered_set<const Layer*> wrapped_in(Layer& model) {
  std::unordered_set<const Layer*> wrapped;
  for (const auto& [name, layer] : layers(model))
    if (dynamic_cast<const Wrapper*>(layer))
      for (const auto& [inner_name, inner] : layers(*layer)) wrapped.insert(inner);
  return wrapped;
}

// Warns on rank 0, if `changed` is 0, that the model has no such layers: "NAME has no effect: MODEL has no
// LAYERS".
void warn_without_effect(const State& state, int changed, const std::string& algorithm,
                         const std::string& layers);

}  // namespace tutti
