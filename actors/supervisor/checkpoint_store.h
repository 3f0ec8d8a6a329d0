#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/remote/uploads.h"
#include "job/job.h"
#include "runtime/disk.h"
#include "runtime/log.h"

namespace tutti {

// The folder of a run's checkpoints. On rank 0.
class CheckpointStore {
 public:
  // All references must outlive the store. `uploads`: null: no copies in a remote store.
  CheckpointStore(Disk& disk, Log& log, const Job& job, Uploads* uploads = nullptr);

  struct Choice {
    std::string folder;  // "" = no checkpoint: a fresh start
    bool own = false;    // the checkpoint is of this run
  };
  // The checkpoint to start from, except rejected ones: with autoresume the newest good checkpoint in this
  // folder, if any; else the checkpoint at load_path. Reads only manifests. The log names damaged
  // checkpoints. Throws UserError, also if the folder has checkpoints of another run.
  Choice choose(const StartFrom& from);
  // Call when a rank found the chosen checkpoint damaged.
  void reject(const std::string& folder, const std::string& problem) { rejected_[folder] = problem; }

  // Removes unfinished checkpoints of killed attempts. Moves published checkpoints that do not lead up to
  // `resumed` (a folder; "" = a fresh start) into `earlier`, `earlier-2`, ...: all if `resumed` lies in
  // another folder, else the checkpoints of later steps. Throws OperatingError.
  void begin(const std::string& resumed);

  // Publishes the folder `unfinished`, then removes checkpoints beyond the number to keep. Returns the error,
  // or "".
  std::string publish(const std::string& name, const std::string& unfinished,
                      const CheckpointManifest& manifest);

  // Removes the folder of a checkpoint that failed.
  void discard(const std::string& unfinished);

 private:
  std::string newest_own(const Setting& asked);
  std::string found_at(const Setting& load_path);
  void require_no_others() const;
  void refuse_run(const std::string& checkpoint, const std::string& run_name) const;
  std::size_t own_steps(const std::vector<std::string>& names, const std::string& resumed) const;
  void move_aside(const std::vector<std::string>& names);
  void prune(const std::string& newest);
  std::vector<std::pair<std::string, double>> measured(const std::vector<std::string>& names);
  CheckpointSearch search();

  Disk& disk_;
  Log& log_;
  Uploads* uploads_;
  const std::string& folder_;
  const std::string imported_;  // folder: the manifest of another program's checkpoint
  const std::string& run_name_;
  const CheckpointSettings& settings_;
  std::map<std::string, std::string> rejected_;  // folder -> problem
  std::map<std::string, BestState> values_;      // of [checkpoint] best, by checkpoint, once read
  std::set<std::string> named_;                  // problems that the log has
  std::string resumed_;  // the name of the checkpoint that this attempt resumes from; kept for replays
  Hdf5Layout layout_;    // of the newest checkpoint.h5
};

}  // namespace tutti
