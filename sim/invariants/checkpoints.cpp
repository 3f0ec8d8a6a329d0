#include "io/checkpoint/checkpoint.h"
#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

int64_t newest_good_step(const Disk& disk, const Job& job, KnownCheckpoints& known) {
  for (const std::string& name : checkpoints_to_try(disk, job.checkpoints, job.settings.checkpoint.set)) {
    const KnownCheckpoint& checkpoint = known.read(disk, job.checkpoints + "/" + name);
    if (checkpoint.error.empty()) return checkpoint.step;
  }
  return -1;
}

}  // namespace

void check_checkpoints(const SimDisk& disk, const Job& job, KnownCheckpoints& known, Findings& findings) {
  const auto view = const_cast<SimDisk&>(disk).view(0);
  for (const std::string& name :
       published_checkpoints(*view, job.checkpoints, job.settings.checkpoint.set.names)) {
    const std::string folder = job.checkpoints + "/" + name;
    const bool being_removed = !view->exists(folder + "/manifest.json");
    if (being_removed || disk.damaged(folder)) continue;
    const std::string& error = known.read(*view, folder).error;
    if (!error.empty()) findings.push_back("a published checkpoint is not whole: " + error);
  }
}

KnownCheckpoint check_published(const SimDisk& disk, const Job& job, const RandomKey& draw,
                                KnownCheckpoints& known, Findings& findings) {
  const auto view = const_cast<SimDisk&>(disk).view(0);
  const auto names = checkpoints_to_try(*view, job.checkpoints, job.settings.checkpoint.set);
  if (names.empty()) {
    findings.push_back("a checkpoint was published, and there is none");
    return {};
  }
  const std::string folder = job.checkpoints + "/" + names.front();
  const KnownCheckpoint newest = known.read(*view, folder);
  const bool whole = newest.error.empty(), damaged = disk.damaged(folder);
  if (!whole && !damaged)
    findings.push_back("a checkpoint is not whole when it is published: " + newest.error);
  const auto after = disk.after_power_loss(draw.fold_in(newest.step));
  check_checkpoints(*after, job, known, findings);
  if (!whole || damaged) return newest;
  const int64_t survivor = newest_good_step(*after->view(0), job, known);
  if (survivor < newest.step)
    findings.push_back("the checkpoint of step " + std::to_string(newest.step) +
                       " was published, and would be lost with the power; the newest would be that of step " +
                       std::to_string(survivor));
  return newest;
}

}  // namespace tutti
