#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/rank.h"
#include "sim/environment/sim_disk.h"
#include "sim/environment/sim_fabric.h"
#include "sim/environment/sim_network.h"
#include "sim/environment/sim_scheduler.h"
#include "sim/environment/watched_dataset.h"
#include "sim/faults/scheduled_faults.h"
#include "sim/invariants/history.h"
#include "sim/invariants/known_checkpoints.h"
#include "tensors/process_state.h"

namespace tutti {

// The host that journals of simulated ranks name.
inline constexpr const char* kSimulatedHost = "simulated";

// What stands between the actors and the simulated outside; empty = nothing. Tests plant bugs here.
struct SimSeams {
  std::function<std::unique_ptr<Group>(std::unique_ptr<Group>, int rank)> group;
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>, int rank)> transport;
  std::function<std::unique_ptr<Disk>(std::unique_ptr<Disk>, int rank)> disk;
  std::function<void(Job&, int start)> job;
  // A rank's cast is in place; an actor may be installed anew.
  std::function<void(SimScheduler&, const RankActors&, const Job&, int rank)> actors;
  // Whenever an actor records what it does, on its thread.
  std::function<void()> happened;
};

// One start of the job: all its ranks, from their processes' beginning to their end, in this process and in
// made-up time.
class SimWorld {
 public:
  struct Options {
    int start = 0;  // the how many-th of the run
    uint64_t seed = 0;
    int64_t steps = 0;  // of a whole run, among which faults strike; 0: not known
    // So long without a step more that is committed, and the start is stuck.
    Nanoseconds timeout = std::chrono::minutes(20);
    std::string journals;  // a run's folder to keep the journals of all ranks in; "" = none
    // Right after a checkpoint was published, on the thread that did; gives what it is.
    std::function<KnownCheckpoint(const SimDisk&)> on_published;
  };

  // Everything must outlive this. `faults` may be null.
  SimWorld(const Job& job, SimDisk& disk, const FaultPlan* faults, const SimSeams& seams, Options options);
  ~SimWorld();

  // Once. The processes are gone when this is destroyed.
  StartSeen run();
  bool lost_power() const { return lost_power_; }

 private:
  // What goes on for a while once it has struck.
  struct Trouble {
    const FaultRule* rule;
    int rank;
    int64_t left;
  };
  struct Rank;

  RankEnvironment environment_of(int rank);
  void add(int rank);
  std::unique_ptr<Recorder> journal_of(int rank) const;
  void add_launcher();
  void happened(int rank, const Happening& happening);
  void seen(int rank, const Happening& happening);
  void watch_data();
  void ended_step(int rank, int64_t step);
  void count_memory(int rank, const Happening& happening);
  void come_to(int rank, const std::string& phase, int64_t step = 0);
  void inject(int rank, const FaultRule& rule, const std::string& phase);
  void kill(int rank);
  void ask_to_stop(int rank, const FaultRule& rule);
  void hang(const FaultRule& rule);
  void check_alive(int rank) const;
  void spend_step(int rank);
  SimDisk::WriteOutcome disk_call(const SimDisk::Call& call);
  SimNetwork::Lateness delay(int from);
  const FaultRule* use(FaultKind kind, int rank);
  void happens(const FaultRule& rule) { ++seen_.faults[rule.label]; }
  RankEnd end_of(int rank) const;

  Job job_;
  SimDisk& disk_;
  SimSeams seams_;
  Options options_;
  RandomKey draw_;
  ScheduledFaults faults_;
  StartSeen seen_;
  std::vector<Trouble> troubles_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  ProcessStateSwitch states_;
  SimScheduler scheduler_;
  SimNetwork network_;
  SimFabric fabric_;
  uint64_t drawn_ = 0;
  int64_t newest_step_ = 0;  // that a rank has committed in this start
  bool lost_power_ = false;
};

}  // namespace tutti
