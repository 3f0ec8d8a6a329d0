#include "sim/invariants/invariants.h"

namespace tutti {

void check_memory(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i)
    for (const HeldSeen& held : run.starts[i].held)
      findings.push_back("in start " + std::to_string(i + 1) + ", rank " + std::to_string(held.rank) +
                         ": step " + std::to_string(held.step) + ": " + std::to_string(held.bytes) +
                         " bytes of the aborted attempt are still held");
}

}  // namespace tutti
