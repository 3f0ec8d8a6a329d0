#pragma once

#include <cstdint>
#include <string>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "io/checkpoint/run_state.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "tensors/digests.h"
#include "training/state.h"

namespace tutti {

// This rank's snapshots: what of the training the Checkpointer is to write, and when its copy is taken.
class Snapshots {
 public:
  enum class Kind {
    kBesideTraining,
    kLast,    // of the run
    kForGood  // nothing changes any more: no copy is needed
  };

  // All must outlive it.
  Snapshots(const Job& job, const State& state, const RankActors& actors, Log& log, Recorder& recorder);

  // Takes the memory for all copies, so that no checkpoint takes what a step has found to be free. Gives its
  // bytes.
  int64_t reserve(Context& context);

  // `saved`: what of the run is saved besides tensors.
  void take(Context& context, RunState saved, Kind kind);
  // Until the last snapshot is copied; before anything that it holds is changed.
  void wait_for_copy(Context& context);
  // For the journal: a hash of this rank's rows. All ranks together hash everything.
  void digest_weights();

  // A checkpoint holds the state as it is now.
  void mark_saved() { saved_at_ = state_.timestamp.batch; }
  bool is_saved() const { return saved_at_ == state_.timestamp.batch; }
  int64_t taken() const { return taken_; }  // of this attempt

 private:
  std::vector<CheckpointPiece> pieces() const;

  const State& state_;
  ActorId checkpointer_;
  Log& log_;
  Recorder& recorder_;
  SaveOptions what_;
  CheckpointNames names_;
  TensorsDigest weights_digest_;
  Pending<SnapshotCopied> copying_;
  int64_t saved_at_ = -1;  // steps done
  int64_t taken_ = 0;
  bool warned_of_disk_ = false;
};

}  // namespace tutti
