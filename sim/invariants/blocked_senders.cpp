#include "sim/invariants/invariants.h"

namespace tutti {

void check_blocked_senders(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i)
    if (!run.starts[i].blocked_senders.empty())
      findings.push_back("in start " + std::to_string(i + 1) +
                         " full mailboxes block each other: " + run.starts[i].blocked_senders);
}

}  // namespace tutti
