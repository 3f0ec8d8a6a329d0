#pragma once

#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "actors/supervisor/checkpoint_store.h"
#include "actors/supervisor/run_folder.h"
#include "job/job.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// The agreement of the Supervisors before training, in rounds of statements. First rank 0 opens the run
// folder and names a checkpoint to start from. Then each rank says what it found of its part of the files; if
// one is damaged, rank 0 names the checkpoint before it, and so on. At last every rank says whether it could
// build and restore its model.
class RunStart {
 public:
  // All references must outlive the start.
  RunStart(const Job& job, int rank, std::string host, RunFolder& folder, CheckpointStore& store, Log& log,
           Recorder& recorder);

  // In the order of the calls; from `naming` to `good` again while a checkpoint is damaged. `statements` are
  // those of all ranks. Any trouble in them is thrown as UserError, the lowest rank's first, on every rank
  // alike.
  Statement opening(Context& context);
  Verify named(const std::vector<Statement>& statements);  // no checkpoint: a fresh start, without `good`
  Statement verification(const Verified& verified) const;
  bool good(const std::vector<Statement>& statements);
  Statement naming();
  const Prepare& preparation() const { return prepare_; }
  Statement restoring(Prepared prepared);
  Start begin(const std::vector<Statement>& statements);

 private:
  std::vector<std::string> agreed(const std::vector<Statement>& statements);
  CheckpointStore::Choice choose();
  std::string begin_text() const;

  const Job& job_;
  int rank_;
  std::string host_;
  RunFolder& folder_;
  CheckpointStore& store_;
  Log& log_;
  Recorder& recorder_;
  bool wrote_nonce_ = false;
  Prepare prepare_;
  std::string trouble_;  // why this rank cannot start, or ""
  Prepared prepared_;
};

}  // namespace tutti
