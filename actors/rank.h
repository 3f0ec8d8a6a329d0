#pragma once

#include <memory>
#include <string>

#include "actors/supervisor/supervisor.h"
#include "collectives/group.h"
#include "io/journal/recorded_run.h"
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

// All that a rank is given from outside, and how it ended. Must outlive the scheduler's run; ranks of one
// process may share disk and clock. As it is, the rank uses this machine, prints and logs nothing.
struct RankEnvironment {
  std::shared_ptr<Group> group;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Disk> disk = std::make_shared<PosixDisk>();
  std::shared_ptr<Clock> clock = std::make_shared<SystemClock>();
  std::shared_ptr<Log> log = make_null_log();
  std::shared_ptr<Recorder> recorder = std::make_shared<RingRecorder>();

  std::string host = kLocalHost;
  int memory_slot = 0;               // of the meter: several ranks may share a process
  bool live = false;                 // neither a replay nor a simulation
  bool quiet = true;                 // no progress, no table
  bool terminal = false;             // standard output is one
  double process_started_s = 0.0;    // unix time
  StartChild start_child = nullptr;  // for loggers that are programs; null: they are not started

  EndKind end = EndKind::kDone;  // of the run, if no error ended it; set while the scheduler runs

  int rank() const { return group->rank(); }
};

// Wires the actors of one rank into a scheduler.
RankActors add_rank(Scheduler& scheduler, const Job& job, RankEnvironment& environment);

}  // namespace tutti
