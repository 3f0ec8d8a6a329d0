#pragma once

#include <memory>
#include <string>

#include "actors/supervisor/supervisor.h"
#include "collectives/mesh.h"
#include "io/http/http_client.h"
#include "io/journal/recorded_run.h"
#include "io/remote/uploads.h"
#include "job/job.h"
#include "runtime/actor/scheduler.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/process/child_process.h"
#include "runtime/recorder.h"
#include "runtime/transport.h"
#include "runtime/workers.h"
#include "training/loggers/factory.h"

namespace tutti {

// The time limit for a rank's log destinations after all other actors of the rank have ended.
constexpr Nanoseconds kLogsEndWithin = std::chrono::seconds(13);

// A rank's access to the outside, and the end of its run. Must outlive the scheduler's run. Ranks of one
// process may share disk and clock. The defaults use this machine, without output or logs.
struct RankEnvironment {
  Groups groups;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Disk> disk = std::make_shared<PosixDisk>();
  std::shared_ptr<Clock> clock = std::make_shared<SystemClock>();
  std::shared_ptr<Log> log = make_null_log();
  std::shared_ptr<Recorder> recorder = std::make_shared<RingRecorder>();

  // What the rank may start or open.
  struct Outside {
    StartChild start_child = nullptr;      // for loggers that are programs; null: such loggers do not start
    OpenHttp open_http = nullptr;          // for loggers that send to a server; null: they send nothing
    StartWorkers start_workers = nullptr;  // for Loaders with num_workers; null: a Loader works alone
    std::shared_ptr<Uploads> uploads = nullptr;  // of rank 0's checkpoints; null: none are copied
  };
  struct Output {
    bool quiet = true;  // print no progress and no table
    bool json = false;  // print only the result, as JSON
  };

  std::string host = kLocalHost;
  std::string after_interrupt;  // printed after Ctrl-C
  int memory_slot = 0;          // of the meter, which the ranks of a process share
  bool live = false;            // neither a replay nor a simulation
  int hosts = 1;                // of all ranks
  Output output;
  double process_started_s = 0.0;  // unix time
  Outside outside;

  AtFailure at_failure = {};     // set by add_rank
  EndKind end = EndKind::kDone;  // of a run that no error ended; set while the scheduler runs

  int rank() const { return groups.front()->rank(); }
};

// Adds the actors of one rank to a scheduler. The first message is a Join with the ranks of the job and the
// environment's groups.
RankActors add_rank(Scheduler& scheduler, const Job& job, RankEnvironment& environment);

}  // namespace tutti
