#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {

void check_progress(const RunSeen& run, Findings& findings) {
  int64_t published = 0;  // the newest that nothing has damaged
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    if (start.resumed_at >= 0 && start.resumed_at < published)
      findings.push_back("start " + std::to_string(i + 1) + " went back to step " +
                         std::to_string(start.resumed_at) + ", though the checkpoint of step " +
                         std::to_string(published) + " was published");
    if (start.damages()) published = 0;  // good ones may have made room for one that is not
    if (start.damages()) continue;
    for (const auto& [step, bits] : start.published) published = std::max(published, step);
  }
  if (run.starts.empty()) return;
  const StartSeen& last = run.starts.back();
  if (last.stuck.empty() && (!last.well() || last.stopped()))
    findings.push_back("the run did not come to its end though there were no faults any more: " +
                       last.end_text());
}

}  // namespace tutti
