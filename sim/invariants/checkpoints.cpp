#include "io/checkpoint.h"
#include "io/run_state.h"
#include "runtime/error.h"
#include "sim/invariants/invariants.h"

namespace tutti {

void check_checkpoints(const SimDisk& disk, const Job& job, Findings& findings) {
  const auto view = const_cast<SimDisk&>(disk).view(0);
  for (const std::string& name :
       published_checkpoints(*view, job.checkpoints, checkpoint_set(job.recipe).names)) {
    const std::string folder = job.checkpoints + "/" + name;
    const bool being_removed = !view->exists(folder + "/manifest.json");
    if (being_removed || disk.damaged(folder)) continue;
    try {
      read_checkpoint(*view, folder);
    } catch (const OperatingError& error) {
      findings.push_back("a published checkpoint is not whole: " + std::string(error.what()));
    }
  }
}

void check_published(const SimDisk& disk, const Job& job, int64_t step, const Draw& draw,
                     Findings& findings) {
  if (disk.damaged(job.checkpoints)) return;
  const auto after = disk.after_power_loss(draw);
  check_checkpoints(*after, job, findings);
  const Checkpoint left = newest_good_checkpoint(
      *after->view(0), job.checkpoints, [](const std::string&) {}, checkpoint_set(job.recipe));
  const int64_t newest = left.folder.empty() ? -1 : RunState::from_json(left.state).step;
  if (newest >= step) return;
  findings.push_back("the checkpoint of step " + std::to_string(step) +
                     " was published, and would be lost with the power; the newest would be that of step " +
                     std::to_string(newest));
}

}  // namespace tutti
