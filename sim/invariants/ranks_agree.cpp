#include "sim/invariants/invariants.h"

namespace tutti {

void check_ranks_agree(const RunSeen& run, Findings& findings) {
  for (const StartSeen& start : run.starts) {
    std::map<int64_t, std::pair<std::size_t, uint64_t>> first;  // by step: who committed it, and what
    for (std::size_t rank = 0; rank < start.steps.size(); ++rank) {
      for (const auto& [step, seen] : start.steps[rank]) {
        if (seen.weights == 0) continue;
        const auto& [other, weights] = first.try_emplace(step, rank, seen.weights).first->second;
        if (weights == seen.weights) continue;
        findings.push_back("after step " + std::to_string(step) + " rank " + std::to_string(rank) +
                           " holds other weights than rank " + std::to_string(other));
        return;
      }
    }
  }
}

}  // namespace tutti
