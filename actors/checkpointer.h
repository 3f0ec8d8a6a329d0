#pragma once

#include <map>
#include <optional>
#include <string>

#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/recorder.h"

namespace tutti {

// Writes this rank's pieces of a checkpoint beside training. The memory for their copies is taken before the
// first step and kept; a Snapshot is answered as soon as it is copied, and Durable (or what went wrong) is
// reported once the file is synced. One checkpoint is in flight at a time: where the disk is slower than the
// interval, the next Snapshot is copied, and its step waits, until the one before is written and, on rank 0,
// concluded by the Supervisor; the ranks train in lockstep, so that holds them all.
class Checkpointer final : public Actor {
 public:
  // `checkpoints`: the folder that holds them; `rank` names this rank's file.
  Checkpointer(Disk& disk, std::string checkpoints, int rank, ActorId supervisor, Recorder& recorder);

  void receive(Context& context, Envelope& envelope) override;

 private:
  void take(Context& context, Envelope& envelope);
  int64_t reserve(const std::vector<CheckpointPiece>& pieces);
  at::Tensor& copy_of(const CheckpointPiece& piece);
  void copy(std::vector<CheckpointPiece>& pieces);
  Durable write(Snapshot& snapshot);

  Disk& disk_;
  std::string checkpoints_;
  int rank_;
  ActorId supervisor_;
  Recorder& recorder_;
  std::string nonce_;
  std::map<std::string, at::Tensor> copies_;  // by piece name
  Hdf5Layout layout_;                         // of the file that was written last
  bool in_flight_ = false;                    // written here, not concluded; rank 0's
  std::optional<Envelope> next_;              // the Snapshot that waits for that
};

}  // namespace tutti
