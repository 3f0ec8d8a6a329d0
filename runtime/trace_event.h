#pragma once

#include <cstdint>

#include "runtime/clock.h"

namespace tutti {

// The actors that record trace events.
enum class ActorKind : uint8_t { kLoader, kCompute, kSync, kCheckpointer, kSupervisor };

// Trace events, sorted by the recording actor. Brackets name the meaning of `TraceEvent::detail`.
enum class TraceKind : uint8_t {
  // Compute
  kStarts,  // never recorded: stands for the time before Compute's first event
  kVerifies,
  kPrepares,
  kBegins,
  kBatch,
  kMicrobatch,  // [number of the microbatch]
  kBackward,    // [number of the microbatch]
  kBackwardDone,
  kUnitForward,      // of a unit of a sharded model [number of the unit]
  kUnitForwardDone,  // [number of the unit]
  kBucketFull,       // [number of the bucket]
  kOutOfMemory,      // [number of the failed allocation within the step]
  kAbortedAttempt,   // at a step [its number of microbatches]
  kStillHeld,        // memory of an aborted attempt [bytes]
  kExtraPass,        // [number of earlier passes]
  kCommitted,
  kSkipped,
  kStepDone,        // also its callbacks
  kEvaluation,      // of a batch [number of the batch]
  kListenerAtWork,  // State::still_at_work
  kPredicts,
  kWritesText,
  kWaitsForDisk,
  kDone,
  // Loader
  kBatchReady,  // the field `step` holds the epoch [number of the batch]
  // Sync
  kReduceBucket,     // [number of the bucket]
  kGather,           // of the parameters of a unit [number of the unit]
  kGathered,         // [number of the unit]
  kVerdict,          // the sum over all ranks has arrived
  kControlSent,      // a packet between Supervisors is about to be sent [the other rank]
  kControlReceived,  // [the other rank]
  // Checkpointer
  kDurable,
  // Supervisor
  kPublished,
  kCheckpointFailed,
};

ActorKind actor_of(TraceKind kind);

// The names in journals, timelines and reports. Static texts, also for signal handlers.
const char* name(ActorKind actor);
const char* name(TraceKind kind);

// An action of an actor. Recording one allocates no memory.
struct TraceEvent {
  TimePoint time;
  TraceKind kind = TraceKind::kStarts;
  int64_t step = -1;
  int64_t detail = 0;
};

}  // namespace tutti
