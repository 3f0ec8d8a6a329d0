#pragma once

#include <map>
#include <optional>
#include <string>

#include "actors/messages/messages.h"
#include "actors/supervisor/checkpoint_store.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"

namespace tutti {

// Publishes a checkpoint once every rank's part is durable. On rank 0.
class Publisher {
 public:
  // All references must outlive the publisher.
  Publisher(const Job& job, CheckpointStore& store, ActorId checkpointer, Log& log, Recorder& recorder);

  struct Conclusion {
    bool published = false;
    bool last = false;  // of the run
  };
  // Adds a rank's part. The last part concludes the checkpoint: it is published, or discarded with a warning
  // in the log, and the Checkpointer gets Concluded.
  std::optional<Conclusion> add(Context& context, int rank, Durable part);

  int64_t concluded() const { return concluded_; }  // checkpoints of this attempt

 private:
  using Parts = std::map<int, Durable>;  // by rank
  std::string publish(const std::string& name, const std::string& unfinished, Parts& parts);

  const Job& job_;
  CheckpointStore& store_;
  ActorId checkpointer_;
  Log& log_;
  Recorder& recorder_;
  std::map<std::string, Parts> unpublished_;  // by checkpoint
  int64_t concluded_ = 0;
  int failed_ = 0;
};

}  // namespace tutti
