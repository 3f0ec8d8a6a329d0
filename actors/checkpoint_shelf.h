#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "runtime/disk.h"
#include "runtime/log.h"

namespace tutti {

// The folder of a run's checkpoints, as rank 0 keeps it.
class CheckpointShelf {
 public:
  // `keep`: published checkpoints that stay, at least the newest; negative = all.
  CheckpointShelf(Disk& disk, Log& log, std::string folder, int keep);

  // Makes the folder, free of what starts that were killed left half written, and says which checkpoint to go on
  // from ("" = afresh): none for "", this folder's newest good one, if any, for "auto", else the one that `resume`
  // names (a checkpoint's or a run's folder). Bad ones are named in the log. A run that starts afresh puts
  // checkpoints that are there already aside, or its own later ones would be mixed with them. Throws OperatingError.
  std::string open(const std::string& resume);

  // Publishes what every rank wrote into `unfinished`, then removes checkpoints that have become too many. What went
  // wrong, or ""; then nothing is left of it, and the checkpoints before it stay.
  std::string publish(const std::string& name, const std::string& unfinished, const CheckpointManifest& manifest);

  // Removes what was written of a checkpoint that failed.
  void discard(const std::string& unfinished);

 private:
  std::string choose(const std::string& resume) const;
  void put_aside();
  void prune(const std::string& newest);

  Disk& disk_;
  Log& log_;
  std::string folder_;
  int keep_;
};

}  // namespace tutti
