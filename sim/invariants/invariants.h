#pragma once

#include <functional>
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

// Invariants of every run under any faults. Each check appends a line for each violation.
using Findings = std::vector<std::string>;

// The data that checks compare a run with.
struct Reference {
  const Job& job;
  const FaultPlan& plan;
  const SimRun& fault_free;
  // The run without faults, with these numbers of microbatches in its steps (the first number is of step 1).
  std::function<const SimAttempt&(const std::vector<int>&)> with_microbatches;
};

// The longest delay, in seconds, that the plan's rules of which `counts` is true can have caused in one step,
// message or collective of the attempt: the sum of FaultRule::lateness_s.
double lateness_s(const Reference& reference, const SimAttempt& attempt, bool (*counts)(const FaultRule&));

// No sample is lost or trained on twice in an epoch, over all attempts.
void check_samples(const Reference& reference, const SimRun& run, Findings& findings);

// All ranks hold the same weights after every step.
void check_ranks_agree(const SimRun& run, Findings& findings);

// Every step and the last checkpoint have the weights of the fault-free run, bit by bit. So have published
// checkpoints, which also have its state of optimizer, listeners and gradient scaler.
void check_bits(const Reference& reference, const SimRun& run, Findings& findings);

// metrics.jsonl and CSV files of a run that trained to its end equal the fault-free run's files, line by
// line. Not checked if memory ran out or writes to the files failed. `logged_lines` returns SimRun::logged.
std::map<std::string, std::vector<std::string>> logged_lines(const Disk& disk, const std::string& run_dir);
void check_logs(const Reference& reference, const SimRun& run, Findings& findings);

// A published checkpoint is whole, now and after a power loss, and stays the newest. Checkpoints with a lost
// or torn write are left out. `check_published` is called right after a publication and returns the newest.
KnownCheckpoint check_published(const SimDisk& disk, const Job& job, const RandomKey& draw,
                                KnownCheckpoints& known, Findings& findings);
void check_checkpoints(const SimDisk& disk, const Job& job, KnownCheckpoints& known, Findings& findings);

// An attempt ends well unless a fault explains the kind of its end.
void check_ends(const Reference& reference, const SimRun& run, Findings& findings);

// A request to stop one rank during training stops all ranks after a few more steps at most.
void check_stops(const SimRun& run, Findings& findings);

// A collective that hangs is detected, and the attempt ends.
void check_hangs(const Reference& reference, const SimRun& run, Findings& findings);

// No attempt begins before the newest published checkpoint, and without faults the run trains to its end.
void check_progress(const SimRun& run, Findings& findings);

// After the last effect of a fault the next step is committed, or the attempt ends, within the time that
// SimWorld::Options::most_stall allows.
void check_liveness(const SimRun& run, Findings& findings);

// A step that ran out of memory has freed all its memory before the retry.
void check_memory(const SimRun& run, Findings& findings);

// An attempt that gives up for lack of memory has saved every committed step.
void check_nothing_lost(const SimRun& run, Findings& findings);

// No actor waits for a reply or a message that nobody can send, no senders block each other with full
// mailboxes, and the time without a new step is within the plan's delays.
void check_waiting(const SimRun& run, Findings& findings);

}  // namespace tutti
