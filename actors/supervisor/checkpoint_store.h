#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "job/checkpoint_options.h"
#include "recipe/setting.h"
#include "runtime/disk.h"
#include "runtime/log.h"

namespace tutti {

// The folder of a run's checkpoints, as rank 0 keeps it.
class CheckpointStore {
 public:
  struct Options {
    std::string folder;
    std::string run_name;
    CheckpointSet set;
    int keep = -1;  // published checkpoints that stay, at least the newest; negative = all
    Setting
        overwrite;  // save_overwrite: whether those of another run are put aside, or an error; none = false
  };
  CheckpointStore(Disk& disk, Log& log, Options options);

  struct Choice {
    std::string folder;  // "" = afresh
    bool own = false;    // of this run
  };
  // The checkpoint to start from: where a run is to go on by itself the newest good one here, if there is
  // one, else the one that load_path stands for. Bad ones are named in the log. Throws UserError, also when
  // another run's checkpoints are in the way.
  Choice choose(const StartFrom& from);

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
  std::string newest_own(const Setting& asked) const;
  std::string found_at(const Setting& load_path) const;
  void require_no_others() const;
  void refuse_run(const std::string& checkpoint, const std::string& run_name) const;
  std::size_t own_steps(const std::vector<std::string>& names, const std::string& resumed) const;
  void put_aside(const std::vector<std::string>& names);
  void prune(const std::string& newest);

  Disk& disk_;
  Log& log_;
  Options options_;
  std::string folder_;
  std::string resumed_;  // here, that this start goes on from: it stays while this start is the newest, which
                         // can be replayed
  Hdf5Layout viewer_;    // of the newest checkpoint.h5
};

}  // namespace tutti
