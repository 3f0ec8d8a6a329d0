#include "algorithms/surgery/effect.h"

#include "training/state.h"

namespace tutti {

void warn_without_effect(const State& state, int changed, const std::string& algorithm,
                         const std::string& layers) {
  if (changed == 0)
    state.warn_on_rank_zero(algorithm + " has no effect: " + state.model->kind() + " has no " + layers);
}

}  // namespace tutti
