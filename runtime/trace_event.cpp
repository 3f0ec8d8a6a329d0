#include "runtime/trace_event.h"

#include <iterator>

namespace tutti {

ActorKind actor_of(TraceKind kind) {
  if (kind < TraceKind::kBatchReady) return ActorKind::kCompute;
  if (kind < TraceKind::kReduceBucket) return ActorKind::kLoader;
  if (kind < TraceKind::kDurable) return ActorKind::kSync;
  return kind < TraceKind::kPublished ? ActorKind::kCheckpointer : ActorKind::kSupervisor;
}

const char* name(ActorKind actor) {
  static constexpr const char* kNames[] = {"loader", "compute", "sync", "checkpointer", "supervisor"};
  return kNames[static_cast<int>(actor)];
}

const char* name(TraceKind kind) {
  static constexpr const char* kNames[] = {"starting",
                                           "verifies a checkpoint",
                                           "prepares model and checkpoint",
                                           "begins",
                                           "batch",
                                           "microbatch",
                                           "backward",
                                           "backward done",
                                           "forward of unit",
                                           "forward of unit done",
                                           "bucket full",
                                           "out of memory at allocation",
                                           "void",
                                           "memory still held",
                                           "extra pass",
                                           "committed",
                                           "skipped",
                                           "step done",
                                           "evaluation",
                                           "a listener is at work",
                                           "predicts",
                                           "writes a sample of text",
                                           "waits for its last checkpoint",
                                           "done",
                                           "batch ready",
                                           "reduce bucket",
                                           "gather unit",
                                           "unit gathered",
                                           "verdict",
                                           "control sent",
                                           "control received",
                                           "durable",
                                           "published",
                                           "checkpoint failed"};
  static_assert(std::size(kNames) == static_cast<int>(TraceKind::kCheckpointFailed) + 1);
  return kNames[static_cast<int>(kind)];
}

}  // namespace tutti
