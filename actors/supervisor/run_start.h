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
// folder and names a checkpoint to start from. Then each rank reports the state of its part of the files; if
// a file is damaged, rank 0 names the previous checkpoint, and so on. Then every rank reports whether its
// model could be built and restored. At last rank 0 has made the folders, in which any rank may write then.
class RunStart {
 public:
  // All references must outlive this object.
  RunStart(const Job& job, std::string host, RunFolder& folder, CheckpointStore& store, Log& log,
           Recorder& recorder);

  // To be called in this order; `naming` to `good` repeatedly while a checkpoint is damaged. `statements`: of
  // all ranks. Trouble in a statement is thrown as UserError, the lowest rank's, the same on every rank.
  Statement opening(Context& context, int rank);
  Verify named(const std::vector<Statement>& statements);  // no checkpoint: a fresh start, without `good`
  Statement verification(const Verified& verified) const;
  bool good(const std::vector<Statement>& statements);
  Statement naming();
  const Prepare& preparation() const { return prepare_; }
  Statement restoring(Prepared prepared);
  void begin(const std::vector<Statement>& statements);
  Start start() const { return {prepared_.position, job_.nonce}; }

 private:
  std::vector<std::string> agreed(const std::vector<Statement>& statements);
  CheckpointStore::Choice choose();
  std::string begin_text() const;

  const Job& job_;
  int rank_ = 0;  // of this rank, from `opening` on
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
