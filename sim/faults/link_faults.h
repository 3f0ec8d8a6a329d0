#pragma once

#include "runtime/random.h"
#include "sim/environment/sim_links.h"
#include "sim/faults/fault_plan.h"

namespace tutti {

// Lets a slow_link, clog or cut begin now on one of `ranks` ranks, at least two. `draw` decides the receiver,
// if the rule names none, and of a clog the ranks and the order of holds and releases.
void begin_link_fault(SimLinks& links, const FaultRule& rule, int rank, int ranks, TimePoint now,
                      const RandomKey& draw);

}  // namespace tutti
