#pragma once

#include <string>

#include "actors/supervisor/supervisor.h"
#include "collectives/group.h"
#include "job/job.h"
#include "runtime/actor/scheduler.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/process/child_process.h"
#include "runtime/recorder.h"
#include "runtime/transport.h"

namespace tutti {

// The longest that a rank's loggers and metrics.jsonl have once everything else of it has ended.
constexpr Nanoseconds kLogsEndWithin = std::chrono::seconds(13);

// A rank's ways to the outside; they must outlive the run.
struct Seams {
  Group& group;
  Transport& transport;
  Disk& disk;
  Clock& clock;
  Log& log;
  Recorder& recorder;
};

// What differs between the places where a rank may run.
struct RankPlace {
  int rank = 0;
  int memory_slot = 0;  // of the meter: several ranks may share a process
  std::string host;
  bool terminal = false;             // standard output is one
  bool quiet = false;                // no progress, no table
  double process_started_s = 0.0;    // unix time
  StartChild start_child = nullptr;  // for loggers that are programs; null: they are not started
  bool live = false;                 // neither a replay nor a simulation
};

// Wires the cast of one rank into a scheduler. The outcome is filled in while the scheduler runs.
RankActors add_rank(Scheduler& scheduler, const Job& job, const RankPlace& place, const Seams& seams,
                    RunOutcome& outcome);

}  // namespace tutti
