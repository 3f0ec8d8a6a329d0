#pragma once

#include <functional>
#include <memory>

#include "sim/simulate/sim_world.h"

namespace tutti {

// Each rank has an algorithm of this kind, and no other listener.
template <class Kind, class... More>
std::function<SimSeams()> algorithm_of_each_rank(More... more) {
  return [=] {
    SimSeams seams;
    seams.job = [=](Job& job, int) {
      job.listeners = [=](int) {
        Engine::Options options;
        options.algorithms = {std::make_shared<Kind>(more...)};
        return options;
      };
    };
    return seams;
  };
}

}  // namespace tutti
