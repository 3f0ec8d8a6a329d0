#include "sim/invariants/invariants.h"

namespace tutti {

void check_waiting(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i)
    if (!run.starts[i].stuck.empty() && run.starts[i].blocked_senders.empty())
      findings.push_back("start " + std::to_string(i + 1) + " never ended: " + run.starts[i].stuck);
}

}  // namespace tutti
