#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/sim_world.h"

namespace tutti {

// A mistake that the product could have, put between the actors and what is around them.
struct Bug {
  std::string name;
  std::string faults;  // kinds that bring it out, "" = none are needed
  std::function<SimSeams()> seams;
};

inline void PrintTo(const Bug& bug, std::ostream* out) { *out << bug.name; }

std::vector<Bug> planted_bugs();

}  // namespace tutti
