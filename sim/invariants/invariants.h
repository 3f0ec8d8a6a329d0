#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "job/job.h"
#include "runtime/clock.h"
#include "sim/environment/sim_disk.h"
#include "sim/faults/fault_plan.h"
#include "sim/invariants/history.h"
#include "sim/invariants/known_checkpoints.h"

namespace tutti {

// What must hold of every run, whatever goes wrong in it. Each adds what it finds broken, a line each.
using Findings = std::vector<std::string>;

// What a run is held against.
struct RunFacts {
  const Job& job;
  const FaultPlan& plan;
  const RunSeen& fault_free;
  Nanoseconds hang_timeout;
  // The run without faults, its steps (from 1) done in these numbers of microbatches.
  std::function<const StartSeen&(const std::vector<int>&)> in_microbatches;
};

// How late the faults of these kinds that struck in a start may have made any one thing, in seconds: a step,
// a message, a collective (infinity: one without end). Many late messages make nobody more silent than one
// does.
double lateness_s(const RunFacts& facts, const StartSeen& start, std::initializer_list<FaultKind> kinds);

// No sample is lost or trained on twice in an epoch, over all starts.
void check_samples(const RunFacts& facts, const RunSeen& run, Findings& findings);

// All ranks hold the same weights after every step.
void check_ranks_agree(const RunSeen& run, Findings& findings);

// Every step ends on the bits of the fault-free run, and so does the run; what a checkpoint holds besides
// (the optimizer's state, the listeners', the gradient scaler's) is that run's too.
void check_bits(const RunFacts& facts, const RunSeen& run, Findings& findings);

// metrics.jsonl and CSV files of a run that came to its end hold what those of the fault-free run do, line
// for line; they may not where memory ran out or writes to them failed. `logged_lines`: RunSeen::logged.
std::map<std::string, std::vector<std::string>> logged_lines(const Disk& disk, const std::string& run_dir);
void check_logs(const RunFacts& facts, const RunSeen& run, Findings& findings);

// A published checkpoint is whole, now and after a power loss, and nothing newer than it is lost. Those that
// a lost or torn write struck are left out. `check_published`: right after one was; gives that one.
KnownCheckpoint check_published(const SimDisk& disk, const Job& job, const RandomKey& draw,
                                KnownCheckpoints& known, Findings& findings);
void check_checkpoints(const SimDisk& disk, const Job& job, KnownCheckpoints& known, Findings& findings);

// A start ends well unless something in it may end it, and for the reason that this gives; and it does not
// where a listener had no memory.
void check_ends(const RunFacts& facts, const RunSeen& run, Findings& findings);

// A rank that is asked to stop while it trains stops all of them, a few steps later at most.
void check_stops(const RunSeen& run, Findings& findings);

// A collective that hangs is noticed, and the start ends.
void check_hangs(const RunFacts& facts, const RunSeen& run, Findings& findings);

// No start goes back behind what was published; and once there are no faults, the run comes to its end.
void check_progress(const RunSeen& run, Findings& findings);

// A step that ran out of memory has given all of it back before it is done again.
void check_memory(const RunSeen& run, Findings& findings);

// A start that gives up for lack of memory has saved all that was trained, unless algorithms have acted in an
// evaluation that is under way.
void check_nothing_lost(const RunSeen& run, Findings& findings);

// No actor is left waiting: for an answer that cannot come, for a message that nobody can send any more, or
// without a step for longer than the plan accounts for.
void check_waiting(const RunSeen& run, Findings& findings);

// No senders block each other, each held back by the full mailbox of the next.
void check_blocked_senders(const RunSeen& run, Findings& findings);

}  // namespace tutti
