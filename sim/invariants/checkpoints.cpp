#include "io/checkpoint.h"
#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// -1: it is not whole.
int64_t step_of_latest(const Disk& disk, const std::string& checkpoints, KnownCheckpoints& known) {
  const auto names = checkpoints_to_try(disk, checkpoints);
  return names.empty() ? -1 : known.look(disk, checkpoints + "/" + names.front()).step;
}

int64_t newest_good_step(const Disk& disk, const std::string& checkpoints, KnownCheckpoints& known) {
  for (const std::string& name : checkpoints_to_try(disk, checkpoints)) {
    const KnownCheckpoint& one = known.look(disk, checkpoints + "/" + name);
    if (one.error.empty()) return one.step;
  }
  return -1;
}

}  // namespace

void check_checkpoints(const SimDisk& disk, const std::string& checkpoints, KnownCheckpoints& known,
                       Findings& findings) {
  const auto view = const_cast<SimDisk&>(disk).view(0);
  for (const std::string& name : published_checkpoints(*view, checkpoints)) {
    const std::string folder = checkpoints + "/" + name;
    const bool being_removed = !view->exists(folder + "/manifest.json");
    if (being_removed || disk.damaged(folder)) continue;
    const std::string& error = known.look(*view, folder).error;
    if (!error.empty()) findings.push_back("a published checkpoint is not whole: " + error);
  }
}

int64_t check_published(const SimDisk& disk, const std::string& checkpoints, const Draw& draw,
                        KnownCheckpoints& known, Findings& findings) {
  const int64_t step = step_of_latest(*const_cast<SimDisk&>(disk).view(0), checkpoints, known);
  if (step < 0 || disk.damaged(checkpoints)) return step;
  const auto after = disk.after_power_loss(draw.at(step));
  check_checkpoints(*after, checkpoints, known, findings);
  const int64_t newest = newest_good_step(*after->view(0), checkpoints, known);
  if (newest < step)
    findings.push_back("the checkpoint of step " + std::to_string(step) +
                       " was published, and would be lost with the power; the newest would be that of step " +
                       std::to_string(newest));
  return step;
}

}  // namespace tutti
