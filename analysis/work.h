#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/trace_event.h"

namespace tutti {

// The kinds of work of an actor: colours in a report, categories of a timeline's slices.
enum class Activity : uint8_t {
  // of Compute
  kSetUp,
  kWaitForData,
  kPrepareBatch,
  kForward,
  kBackward,
  kWaitForGather,
  kWaitForSums,
  kRetry,  // after an attempt without enough memory
  kUpdate,
  kStepEnd,  // callbacks, logs, snapshots
  kEvaluation,
  kPrediction,
  kWaitForCheckpoint,
  kFinish,
  // of the other actors, beside Compute
  kLoad,
  kCollective,
  kWriteCheckpoint,
  kPublishCheckpoint,
  kCoordinate,
};
inline constexpr int kActivities = static_cast<int>(Activity::kCoordinate) + 1;

const char* name(Activity work);

// The work that a message starts in its receiver, and its shown name; other messages keep their names.
struct MessageWork {
  Activity work = Activity::kCoordinate;
  std::string name;
};
MessageWork work_of_message(std::string_view actor, std::string_view message);

// The meaning of a trace event for its actor's work.
struct EventWork {
  enum class Role : uint8_t {
    kBegins,  // from the event on
    kEnds,    // from the actor's sign before to the event
    kMark,    // nothing changes
  };
  Role role = Role::kBegins;
  Activity work = Activity::kCoordinate;
  const char* name = nullptr;
  const char* detail = nullptr;  // the meaning of the event's `detail`; null: none
  bool numbered = false;         // the slice's name ends with the detail: "all-reduce of bucket 2"
  bool waits_for_next = false;   // lasts until the actor's next record of any kind
};
EventWork work_of_event(TraceKind kind);

// The step of an event, counted from 1; for events between steps the number of steps done.
int64_t step_of_event(TraceKind kind, int64_t step);
// The detail of an event; batches and microbatches count from 1.
int64_t detail_of_event(TraceKind kind, int64_t detail);

// The kind of the event with this name, from any version; nullopt for an unknown name.
const TraceKind* trace_kind(std::string_view name);

}  // namespace tutti
