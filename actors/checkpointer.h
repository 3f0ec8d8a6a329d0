#pragma once

#include <optional>
#include <string>

#include "actors/checkpoint_copies.h"
#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/recorder.h"

namespace tutti {

// Writes this rank's pieces of checkpoints during training. Memory for copies is allocated before the first
// step and kept. SnapshotCopied is sent once the pieces are copied, Durable (perhaps with an error) once the
// file is synced.
//
// One checkpoint is in flight at a time. A Snapshot that comes early is copied, and its step continues, only
// after the previous checkpoint is written and, on rank 0, concluded by the Supervisor. Ranks train in
// lockstep, so all wait.
class Checkpointer final : public Actor {
 public:
  // `checkpoints`: the folder of all checkpoints.
  Checkpointer(Disk& disk, std::string checkpoints, ActorId supervisor, Recorder& recorder,
               const Device& device = {});

  void receive(Context& context, Envelope& envelope) override;

 private:
  void save(Context& context, Envelope& envelope);
  Durable write(Snapshot& snapshot);

  Disk& disk_;
  Device device_;
  std::string checkpoints_;
  int rank_ = 0;  // from Join on
  ActorId supervisor_;
  Recorder& recorder_;
  std::string nonce_;
  CheckpointCopies copies_;
  Hdf5Layout layout_;             // of the last file
  bool in_flight_ = false;        // a checkpoint is not concluded; on rank 0
  std::optional<Envelope> next_;  // the Snapshot that waits for the conclusion
};

}  // namespace tutti
