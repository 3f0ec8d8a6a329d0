#include "actors/compute/train_step.h"
#include "sim/invariants/invariants.h"

namespace tutti {

void check_memory(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i)
    for (const std::string& warning : run.starts[i].warnings)
      if (warning.find(TrainStep::kStillHeld) != std::string::npos)
        findings.push_back("in start " + std::to_string(i + 1) + ", " + warning);
}

}  // namespace tutti
