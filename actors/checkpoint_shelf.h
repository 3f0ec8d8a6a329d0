#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/setting.h"

namespace tutti {

// The folder of a run's checkpoints, as rank 0 keeps it.
class CheckpointShelf {
 public:
  // `keep`: published checkpoints that stay, at least the newest; negative = all.
  CheckpointShelf(Disk& disk, Log& log, std::string folder, int keep);

  // The checkpoint to go on from, "" = none: for "auto" the newest good one here, if there is one, else the
  // one in the folder that `resume` names. Bad ones are named in the log. Throws UserError.
  std::string choose(const Setting& resume) const;

  // Frees the folder of what killed starts left half written. Published checkpoints that a run which goes on
  // from the checkpoint `resumed` ("" = starts afresh) would take for its own go into `earlier`, `earlier-2`,
  // ... beside it: all when that one lies elsewhere, else those of later steps. Throws OperatingError.
  void begin(const std::string& resumed);

  // Publishes what every rank wrote into `unfinished`, then removes checkpoints that are too many. What went
  // wrong, or "".
  std::string publish(const std::string& name, const std::string& unfinished,
                      const CheckpointManifest& manifest);

  // Removes what was written of a checkpoint that failed.
  void discard(const std::string& unfinished);

 private:
  std::size_t own_steps(const std::vector<std::string>& names, const std::string& resumed) const;
  void put_aside(const std::vector<std::string>& names);
  void prune(const std::string& newest);

  Disk& disk_;
  Log& log_;
  std::string folder_;
  int keep_;
  Hdf5Layout viewer_;  // of the newest checkpoint.h5
};

}  // namespace tutti
