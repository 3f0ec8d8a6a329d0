#pragma once

#include "actors/rank.h"

namespace tutti {

// Sets up the environment of a rank in a run started by a user: log and journal in the run folder, standard
// streams, child processes, uploads. `quiet`: print and log nothing. Group, transport and host do not change.
void make_live(RankEnvironment& environment, const Job& job, bool quiet = false);

// True if a start reads or writes a remote store, for which other ranks wait.
bool uses_remote(const Setting& recipe, const std::string& resume);

// Call on rank 0 before the job is made. Fetches the newest good checkpoint of this run, or the checkpoint at
// a remote load_path, into the run's folder, as the recipe and the command line (`resume`) ask. Throws
// UserError with the key: if the store cannot be reached, or a fresh run would mix its checkpoints with
// others.
void fetch_start(const Setting& recipe, const std::string& run_dir, const std::string& resume);

// After the actors' end: waits for uploads, within [remote] finish_timeout. False if a checkpoint is not in
// the remote folder, which log, output and result.json say.
bool finish_uploads(const RankEnvironment& environment, const Job& job);

// The exit code of a run that ended with `code`.
inline int code_with_uploads(int code, bool uploaded) {
  return code == 0 && !uploaded ? exit_code(EndKind::kNoLastCheckpoint) : code;
}

}  // namespace tutti
