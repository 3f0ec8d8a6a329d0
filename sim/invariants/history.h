#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "sim/faults/scheduled_faults.h"
#include "sim/invariants/known_checkpoints.h"

namespace tutti {

// What a rank did in one step.
struct StepSeen {
  std::vector<int64_t> samples;  // that it trained on
  int microbatches = 0;          // in how many
  int aborted_microbatches = 0;  // the most of an attempt that ran out of memory, on any rank; 0: none did
  uint64_t weights = 0;          // a hash of all of them once the step was committed; 0: it was not
};

// How one rank's process ended.
struct RankEnd {
  int exit_code = 0;   // where it ended by itself
  std::string reason;  // "" or why it did not end well
  bool killed = false;
  bool stopped = false;  // on request, before training was over
  bool well() const { return !killed && reason.empty() && exit_code == 0; }
};

// A rank that still had something to train was asked to stop, in this step or before its next.
struct StopSeen {
  int rank = 0;
  int64_t step = 0;
};

// A collective that all ranks had posted did not end before then.
struct HangSeen {
  TimePoint began, until;
};

// One start of the job.
struct StartSeen {
  int64_t resumed_at = -1;  // steps that were done before; -1: it did not come to train
  std::vector<std::map<int64_t, StepSeen>> steps;  // by rank, then by step (from 1)
  std::map<int64_t, SavedBits> published;          // checkpoints, by step
  std::vector<RankEnd> ends;                       // by rank
  FaultCounts faults;                              // that struck in it, and how often they really happened
  std::vector<StopSeen> stops;
  bool asked_to_stop = false;  // some rank was, be it when all was trained
  std::vector<HangSeen> hangs;
  std::vector<std::string> warnings;  // of the ranks' logs: "rank 1: ..."
  std::string stuck;                  // why the simulator ended it, or ""
  std::string blocked_senders;        // that it ended it for: who waits for whose mailbox
  uint64_t deliveries = 0;            // a hash of their order
  uint64_t next_draw = 0;             // of who runs next, after the last
  TimePoint took;

  bool well() const;               // every rank ended well
  int64_t last_step() const;       // that any rank began; 0: none did
  int64_t last_committed() const;  // and brought to its end
  bool stopped() const;
  bool happened(const std::string& kind) const;
  bool happened(const FaultRule& rule) const;
  bool damages() const;  // files, and nobody was told
  // "rank 1 was killed; rank 0: rank 1 is gone"
  std::string end_text() const;
};

// A run: its starts, one after the other, on one disk.
struct RunSeen {
  std::vector<StartSeen> starts;
  uint64_t weights = 0;     // of the newest checkpoint at the end, 0: there is none
  int64_t saved_step = 0;   // and of which step it is
  bool saved_whole = true;  // nothing of that step is still due, nor is anything of the next one done
  std::map<std::string, std::vector<std::string>> logged;  // by file: its lines, without what was measured
};

}  // namespace tutti
