#include "sim/environment/sim_links.h"

#include <algorithm>

namespace tutti {

TimePoint SimLinks::pass(int from, int to, TimePoint sent) {
  TimePoint leaves = sent;
  const auto applies = [&](const Hold& hold) {
    const bool on_link =
        (hold.from == kAnyRank || hold.from == from) && (hold.to == kAnyRank || hold.to == to);
    return on_link && hold.begin <= leaves && leaves < hold.end;
  };
  // A message that one hold releases may run into the next.
  for (auto hold = std::ranges::find_if(holds_, applies); hold != holds_.end();
       hold = std::ranges::find_if(holds_, applies)) {
    leaves = hold->end;
    on_effect_(hold->label, leaves);
  }
  if (leaves == kNever) return kNever;
  for (Slowness& slowness : slow_) {
    if (slowness.from != from || slowness.to != to || slowness.count == 0) continue;
    --slowness.count;
    leaves += slowness.more;
    on_effect_(slowness.label, leaves);
  }
  return leaves;
}

}  // namespace tutti
