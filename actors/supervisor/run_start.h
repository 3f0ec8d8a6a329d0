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

// The agreement of the Supervisors before training, in two rounds of statements. First rank 0 opens the run
// folder and names the checkpoint to start from. Then every rank says whether it could build and restore its
// model.
class RunStart {
 public:
  // All references must outlive the start.
  RunStart(const Job& job, int rank, std::string host, RunFolder& folder, CheckpointStore& store, Log& log,
           Recorder& recorder);

  // In the order of the calls; `statements` are those of all ranks. Any trouble in them is thrown as
  // UserError, the lowest rank's first, on every rank alike.
  Statement first_statement(Context& context);
  Prepare prepare(const std::vector<Statement>& statements);
  Statement second_statement(Prepared prepared);
  Start begin(const std::vector<Statement>& statements);

 private:
  CheckpointStore::Choice choose();
  std::string begin_text() const;

  const Job& job_;
  int rank_;
  std::string host_;
  RunFolder& folder_;
  CheckpointStore& store_;
  Log& log_;
  Recorder& recorder_;
  Prepare prepare_;
  std::string trouble_;  // why this rank cannot start, or ""
  Prepared prepared_;
};

}  // namespace tutti
