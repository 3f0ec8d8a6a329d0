#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/simulate/sim_world.h"

namespace tutti {

// A mistake that the product could have, put between the actors and what is around them.
struct Bug {
  std::string name;
  std::string faults;  // kinds that bring it out, "" = none are needed
  std::function<SimSeams()> seams;
  std::function<SimSeams()> reference = {};  // the same, done as it should be; empty: nothing is needed
  std::string shows = "";                    // part of each first finding; "" = it may be any
  std::string recipe = "";                   // more of the job's
  int ranks = 3;
};

inline void PrintTo(const Bug& bug, std::ostream* out) { *out << bug.name; }

std::vector<Bug> planted_bugs();
std::vector<Bug> bugs_of_actors();  // part of all, and so are
std::vector<Bug> bugs_of_memory();  // those that show when it runs out
std::vector<Bug> bugs_of_sharding();
std::vector<Bug> bugs_of_state();  // those that weights do not show

}  // namespace tutti
