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

// Sends this rank's snapshots to the Checkpointer, and waits for their copies.
class Snapshots {
 public:
  enum class Kind {
    kBesideTraining,
    kLast,    // of the run
    kForGood  // the tensors will not change any more: no copy is needed
  };

  // All references must outlive this.
  Snapshots(const Job& job, const State& state, const RankActors& actors, Log& log, Recorder& recorder);

  // Allocates the memory for all copies before the first step, so that no checkpoint takes memory from a
  // step. Returns the bytes.
  int64_t reserve(Context& context);

  // `saved`: the state of the run besides tensors.
  void take(Context& context, RunState saved, Kind kind);
  // Waits until the last snapshot is copied. Must be called before its tensors change.
  void wait_for_copy(Context& context);
  // For the journal: hashes this rank's rows of all weights and optimizer state.
  void digest_weights();

  // The current state is in a checkpoint.
  void mark_saved() { saved_at_ = state_.timestamp.batch; }
  bool is_saved() const { return saved_at_ == state_.timestamp.batch; }
  int64_t taken() const { return taken_; }  // of this attempt

 private:
  std::vector<CheckpointPiece> pieces() const;

  const State& state_;
  ActorId checkpointer_;
  Log& log_;
  Recorder& recorder_;
  const CheckpointSettings& settings_;
  TensorsDigest weights_digest_;
  Pending<SnapshotCopied> copying_;
  int64_t saved_at_ = -1;  // steps
  int64_t taken_ = 0;
  bool warned_of_disk_ = false;
};

}  // namespace tutti
