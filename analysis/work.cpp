#include "analysis/work.h"

#include <array>
#include <iterator>
#include <unordered_map>

namespace tutti {
namespace {

using Role = EventWork::Role;

bool is(std::string_view actor, ActorKind kind) { return actor == name(kind); }

const std::unordered_map<std::string_view, MessageWork>& messages_of_sync() {
  static const std::unordered_map<std::string_view, MessageWork> table{
      {"RunEntry", {Activity::kCollective, "collectives"}},
      {"AwaitEntry", {Activity::kCollective, "collectives"}},
      {"FinishStep", {Activity::kCollective, "end of pass"}},
      {"SumDoubles", {Activity::kCollective, "all-reduce of numbers"}},
      {"SetPlan", {Activity::kCoordinate, "plan of the collectives"}},
      {"AllocateMemory", {Activity::kCoordinate, "allocate memory"}},
      {"Agree", {Activity::kCoordinate, "agree with the other ranks"}},
      {"SendControl", {Activity::kCoordinate, "control"}}};
  return table;
}

const std::unordered_map<std::string_view, MessageWork>& messages() {
  static const std::unordered_map<std::string_view, MessageWork> table{
      {"Join", {Activity::kSetUp, "join the other ranks"}},
      {"Verify", {Activity::kSetUp, "verify a checkpoint"}},
      {"Prepare", {Activity::kSetUp, "prepare"}},
      {"Start", {Activity::kSetUp, "start"}},
      {"BatchReady", {Activity::kFinish, "left batch"}},
      {"StopRequested", {Activity::kCoordinate, "asked to stop"}},
      {"Stop", {Activity::kFinish, "end"}},
      {"Credit", {Activity::kCoordinate, "load"}},
      {"LoadBatch", {Activity::kCoordinate, "load"}},
      {"AddTransforms", {Activity::kCoordinate, "add transforms"}},
      {"ReserveCopies", {Activity::kSetUp, "reserve memory for copies"}},
      {"Snapshot", {Activity::kCoordinate, "checkpoint"}},
      {"Concluded", {Activity::kCoordinate, "checkpoint concluded"}},
      {"Durable", {Activity::kCoordinate, "part of a checkpoint is written"}},
      {"Verified", {Activity::kCoordinate, "a checkpoint is verified"}},
      {"Prepared", {Activity::kCoordinate, "Compute is prepared"}},
      {"Agreed", {Activity::kCoordinate, "the ranks agree"}},
      {"TrainingDone", {Activity::kCoordinate, "training is done"}}};
  return table;
}

EventWork begins(Activity work, const char* name) { return {Role::kBegins, work, name}; }
EventWork mark(Activity work, const char* name, const char* detail = nullptr) {
  return {Role::kMark, work, name, detail};
}
EventWork waits(Activity work, const char* name, const char* detail) {
  return {Role::kBegins, work, name, detail, true, true};
}

EventWork compute_work(TraceKind kind) {
  switch (kind) {
    case TraceKind::kVerifies:
      return begins(Activity::kSetUp, "verify checkpoint");
    case TraceKind::kPrepares:
      return begins(Activity::kSetUp, "build and restore the model");
    case TraceKind::kBatch:
      return begins(Activity::kPrepareBatch, "prepare batch");
    case TraceKind::kMicrobatch:
      return {Role::kBegins, Activity::kForward, "forward", "microbatch"};
    case TraceKind::kBackward:
      return {Role::kBegins, Activity::kBackward, "backward", "microbatch"};
    case TraceKind::kBackwardDone:
      return begins(Activity::kWaitForSums, "wait for all-reduce");
    case TraceKind::kUnitForward:
      return {Role::kBegins, Activity::kForward, "forward of unit", "unit", true};
    case TraceKind::kUnitForwardDone:
      return begins(Activity::kForward, "forward");
    case TraceKind::kBucketFull:
      return mark(Activity::kBackward, "bucket full", "bucket");
    case TraceKind::kOutOfMemory:
      return mark(Activity::kRetry, "out of memory", "allocation");
    case TraceKind::kAbortedAttempt:
      return {Role::kBegins, Activity::kRetry, "retry in smaller parts", "microbatches"};
    case TraceKind::kStillHeld:
      return mark(Activity::kRetry, "memory still held", "bytes");
    case TraceKind::kExtraPass:
      return {Role::kBegins, Activity::kPrepareBatch, "extra pass", "pass"};
    case TraceKind::kCommitted:
    case TraceKind::kSkipped:
      return begins(Activity::kStepEnd, "end of step");
    case TraceKind::kStepDone:
      return mark(Activity::kStepEnd, "step done");
    case TraceKind::kEvaluation:
      return {Role::kBegins, Activity::kEvaluation, "evaluation", "batch"};
    case TraceKind::kListenerAtWork:
      return mark(Activity::kStepEnd, "a callback is at work");
    case TraceKind::kPredicts:
      return begins(Activity::kPrediction, "prediction");
    case TraceKind::kWritesText:
      return begins(Activity::kFinish, "write a sample of text");
    case TraceKind::kWaitsForDisk:
      return begins(Activity::kWaitForCheckpoint, "wait for the last checkpoint");
    case TraceKind::kDone:
      return begins(Activity::kFinish, "training is done");
    case TraceKind::kBegins:
      return begins(Activity::kSetUp, "set-up");
    default:
      return begins(Activity::kCoordinate, name(kind));
  }
}

EventWork other_work(TraceKind kind) {
  switch (kind) {
    case TraceKind::kBatchReady:
      return {Role::kEnds, Activity::kLoad, "load a batch", "batch"};
    case TraceKind::kReduceBucket:
      return waits(Activity::kCollective, "all-reduce of bucket", "bucket");
    case TraceKind::kGather:
      return waits(Activity::kCollective, "gather of unit", "unit");
    case TraceKind::kGathered:
      return mark(Activity::kCollective, "unit gathered", "unit");
    case TraceKind::kVerdict:
      return {Role::kEnds, Activity::kCollective, "all-reduce, verdict"};
    case TraceKind::kControlSent:
      return {Role::kBegins, Activity::kCoordinate, "control to rank", "rank", true};
    case TraceKind::kControlReceived:
      return {Role::kBegins, Activity::kCoordinate, "control from rank", "rank", true};
    case TraceKind::kDurable:
      return {Role::kEnds, Activity::kWriteCheckpoint, "write checkpoint"};
    case TraceKind::kPublished:
      return {Role::kEnds, Activity::kPublishCheckpoint, "publish checkpoint"};
    default:
      return {Role::kEnds, Activity::kPublishCheckpoint, "checkpoint failed"};
  }
}

}  // namespace

const char* name(Activity work) {
  static constexpr const char* kNames[] = {"set-up",
                                           "wait for data",
                                           "prepare batch",
                                           "forward",
                                           "backward",
                                           "wait for gather",
                                           "wait for all-reduce",
                                           "retry",
                                           "update",
                                           "end of step",
                                           "evaluation",
                                           "prediction",
                                           "wait for checkpoint",
                                           "finish",
                                           "load",
                                           "collectives",
                                           "write checkpoint",
                                           "publish checkpoint",
                                           "coordinate"};
  static_assert(std::size(kNames) == kActivities);
  return kNames[static_cast<int>(work)];
}

MessageWork work_of_message(std::string_view actor, std::string_view message) {
  if (is(actor, ActorKind::kSync))
    if (const auto sync_work = messages_of_sync().find(message); sync_work != messages_of_sync().end())
      return sync_work->second;
  constexpr std::string_view kControl = "ControlReceived";  // from rank N
  if (message.starts_with(kControl))
    return {Activity::kCoordinate, "control" + std::string(message.substr(kControl.size()))};
  const auto work = messages().find(message);
  return work == messages().end() ? MessageWork{Activity::kCoordinate, std::string(message)} : work->second;
}

EventWork work_of_event(TraceKind kind) {
  return actor_of(kind) == ActorKind::kCompute ? compute_work(kind) : other_work(kind);
}

int64_t step_of_event(TraceKind kind, int64_t step) {
  switch (kind) {
    case TraceKind::kVerifies:
    case TraceKind::kPrepares:
    case TraceKind::kBegins:
    case TraceKind::kStepDone:
    case TraceKind::kEvaluation:
    case TraceKind::kPredicts:
    case TraceKind::kWritesText:
    case TraceKind::kListenerAtWork:
    case TraceKind::kDone:
      return step;
    default:
      return step + 1;
  }
}

int64_t detail_of_event(TraceKind kind, int64_t detail) {
  const bool from_zero = kind == TraceKind::kMicrobatch || kind == TraceKind::kBackward ||
                         kind == TraceKind::kEvaluation || kind == TraceKind::kBatchReady;
  return from_zero ? detail + 1 : detail;
}

const TraceKind* trace_kind(std::string_view text) {
  static const std::unordered_map<std::string_view, TraceKind> table = [] {
    std::unordered_map<std::string_view, TraceKind> kinds;
    for (int kind = 0; kind <= static_cast<int>(TraceKind::kCheckpointFailed); ++kind)
      kinds.emplace(name(static_cast<TraceKind>(kind)), static_cast<TraceKind>(kind));
    return kinds;
  }();
  const auto kind = table.find(text);
  return kind == table.end() ? nullptr : &kind->second;
}

}  // namespace tutti
