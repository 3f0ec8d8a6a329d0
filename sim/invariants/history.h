#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/messages/heartbeat.h"
#include "runtime/clock.h"
#include "runtime/rank_end.h"
#include "sim/faults/fault_plan.h"
#include "sim/invariants/known_checkpoints.h"

namespace tutti {

// A rank's work on one step.
struct SimStep {
  std::vector<int64_t> samples;  // indices of the samples trained on
  int microbatches = 0;          // of the last try
  int aborted_microbatches = 0;  // the largest count of a try that ran out of memory on any rank; 0: none
  uint64_t weights = 0;          // a hash of all weights after the commit; 0: not committed
};

// A request to stop a rank that was still training, in this step or before the next.
struct SimStop {
  int rank = 0;
  int64_t step = 0;
};

// A collective that hung after the posts of all ranks.
struct SimHang {
  TimePoint began, until;
};

// A standstill without an effect of a fault, longer than the run's bound.
struct SimStall {
  TimePoint since;   // the last step, or the end of the last effect
  int64_t step = 0;  // the newest committed step
  int rank = 0;      // that stood still for the longest time
  Heartbeat last;    // what that rank did last
};

// Memory that a try of a step still held, after running out of memory, when the step was retried.
struct HeldMemory {
  int rank = 0;
  int64_t step = 0, bytes = 0;
};

// One attempt of the job: its processes, from start to end. A fault plan calls attempts `starts`.
struct SimAttempt {
  int number = 1;                                 // in the run, from 1
  int64_t resumed_at = -1;                        // steps done before this attempt; -1: no training began
  std::vector<std::map<int64_t, SimStep>> steps;  // by rank, then by step (from 1)
  int pieces = 1;                                 // of the parameters: rank r holds piece r % pieces
  std::map<int64_t, SavedBits> published;         // checkpoints, by step
  std::vector<RankEnd> ends;                      // by rank
  FaultCounts faults;                             // faults that were due, and how often each had an effect
  std::vector<SimStop> stops;
  bool asked_to_stop = false;  // some rank was, possibly after the last step
  std::vector<SimHang> hangs;
  std::vector<HeldMemory> held;
  std::vector<SimStall> stalls;
  Nanoseconds longest_stall{0};  // the longest standstill, at most the bound unless `stalls` has it
  std::string stuck;             // why the simulator aborted the attempt, or ""
  std::string blocked_senders;   // the actors of a cycle of full mailboxes, if that is why; else ""
  uint64_t deliveries = 0;       // TokenScheduler::delivery_digest and next_draw at the end
  uint64_t next_draw = 0;
  TimePoint took;

  bool well() const;               // every rank ended well
  int64_t last_step() const;       // the last step that any rank began; 0: none
  int64_t last_committed() const;  // the last step that any rank committed; 0: none
  bool stopped() const;
  bool had_fault(FaultKind kind) const;
  bool had_fault(const FaultRule& rule) const;
  bool damages_files() const;  // some write was lost or torn without an error
  std::string name() const { return "attempt " + std::to_string(number); }
  // "rank 1 was killed; rank 0: rank 1 is gone"
  std::string end_text() const;
};

// True if a step or an evaluation ran out of memory, which all ranks learn.
bool gave_up_for_memory(const RankEnd& end);

// A run: successive attempts of the job on one disk.
struct SimRun {
  std::vector<SimAttempt> attempts;
  uint64_t weights = 0;     // a hash of the newest checkpoint's weights at the end; 0: no checkpoint
  int64_t saved_step = 0;   // the step of that checkpoint
  bool saved_whole = true;  // that checkpoint has no pending work, and no work of the next step
  std::map<std::string, std::vector<std::string>> logged;  // lines by file, without measured values
};

}  // namespace tutti
