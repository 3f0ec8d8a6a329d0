#pragma once

#include <cstdint>

#include "runtime/clock.h"

namespace tutti {

// The actors that record what they do.
enum class ActorKind : uint8_t { kLoader, kCompute, kSync, kCheckpointer, kSupervisor };

// What an actor records that it does; sorted by actor. `detail` is in brackets.
enum class TraceKind : uint8_t {
  // Compute
  kStarts,  // never recorded: what Compute does before it records anything
  kPrepares,
  kBegins,
  kBatch,
  kMicrobatch,  // [its number]
  kBackward,    // [the microbatch's number]
  kBackwardDone,
  kBucketFull,   // [its number]
  kOutOfMemory,  // [the number of the allocation that failed, in a step]
  kVoid,         // an attempt at a step [in so many microbatches]
  kStillHeld,    // by an aborted attempt [bytes]
  kExtraPass,    // [passes before it]
  kCommitted,
  kSkipped,
  kEvaluation,  // of a batch [its number]
  kListens,     // State::still_at_work
  kPredicts,
  kWritesText,
  kWaitsForDisk,
  kWaitsForLogs,
  kWaited,
  kDone,
  // Loader
  kBatchReady,  // of an epoch, in place of the step [its number]
  // Sync
  kReduceBucket,     // [its number]
  kVerdict,          // of all ranks has come
  kControlSent,      // a packet between Supervisors, before it is sent [the other rank]
  kControlReceived,  // [the other rank]
  // Checkpointer
  kDurable,
  // Supervisor
  kPublished,
  kCheckpointFailed,
};

ActorKind actor_of(TraceKind kind);

// As journals, timelines and reports have them. Static texts, for the handler of a signal too.
const char* name(ActorKind actor);
const char* name(TraceKind kind);

// What an actor did on a rank, and a number or two that tell it apart. Recording one takes no memory.
struct TraceEvent {
  TimePoint time;
  TraceKind kind = TraceKind::kStarts;
  int64_t step = -1;
  int64_t detail = 0;
};

}  // namespace tutti
