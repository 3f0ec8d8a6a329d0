#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/rank.h"
#include "runtime/actor/token_scheduler.h"
#include "sim/environment/sim_disk.h"
#include "sim/environment/sim_fabric.h"
#include "sim/environment/sim_links.h"
#include "sim/environment/sim_network.h"
#include "sim/environment/tracking_dataset.h"
#include "sim/faults/fault_plan.h"
#include "sim/invariants/history.h"
#include "sim/invariants/known_checkpoints.h"
#include "sim/simulate/progress_watch.h"
#include "tensors/process_state.h"

namespace tutti {

// The host name in journals of simulated ranks.
inline constexpr const char* kSimulatedHost = "simulated";

// Wrappers between the actors and their simulated environment; empty = none. Tests plant bugs here.
struct SimSeams {
  std::function<std::unique_ptr<Group>(std::unique_ptr<Group>, int rank)> group;
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>, int rank)> transport;
  std::function<std::unique_ptr<Disk>(std::unique_ptr<Disk>, int rank)> disk;
  std::function<void(Job&, int attempt)> job;
  // Called when a rank's actors are installed; may replace an actor.
  std::function<void(TokenScheduler&, const RankActors&, const Job&, int rank)> actors;
  // Called for each trace event, on the actor's thread.
  std::function<void()> on_event;
};

// Runs all ranks of one attempt of the job, in this process and in simulated time.
class SimWorld final : SimFabric::Processes {
 public:
  struct Options {
    int attempt = 0;  // number of the attempt, from 0
    uint64_t seed = 0;
    int64_t steps = 0;  // of a whole run, for the draws of faults; 0: unknown
    // The attempt is aborted as stuck if no further step is committed for this long.
    Nanoseconds timeout = std::chrono::minutes(20);
    // A longer standstill without an effect of a fault is a stall (SimAttempt::stalls).
    Nanoseconds most_stall = Nanoseconds::max();
    std::string journals;  // the run folder for the journals of all ranks; "" = none
    // Called on the publishing thread after a publication; returns the new checkpoint.
    std::function<KnownCheckpoint(const SimDisk&)> on_published;
  };

  // References must outlive this. `faults` may be null.
  SimWorld(const Job& job, SimDisk& disk, const FaultPlan* faults, const SimSeams& seams, Options options);
  ~SimWorld() override;

  // Call once. Destroying this ends the processes.
  SimAttempt run();
  bool lost_power() const { return lost_power_; }

 private:
  // A fault that affects `remaining` further steps, messages or writes.
  struct ActiveFault {
    const FaultRule* rule;
    int rank;
    int64_t remaining;
  };
  struct Rank;
  class Launcher;

  RankEnvironment environment_of(int rank);
  void add(int rank);
  std::unique_ptr<Recorder> journal_of(int rank) const;
  void on_event(int rank, const TraceEvent& event);
  void observe(int rank, const TraceEvent& event);
  void track_samples();
  void record_step(int rank, int64_t step);
  void track_memory(int rank, const TraceEvent& event);
  void enter_phase(int rank, FaultPhase phase);
  void inject(int rank, const FaultRule& rule, FaultPhase phase);
  void kill(int rank);
  void pause(int rank, const FaultRule& rule);
  void jump_clock(int rank, const FaultRule& rule);
  void request_stop(int rank, const FaultRule& rule);
  void hang(const FaultRule& rule);
  bool gone(int rank) const override;
  void check_alive(int rank) const override;
  void on_hang(const SimFabric::Hang& hang) override;
  TimePoint arrival(const std::vector<int>& from, int to, TimePoint sent) override;
  void on_late(const std::string& label, TimePoint until);
  void watch_progress(TimePoint now);
  void spend_step(int rank);
  SimDisk::WriteOutcome disk_call(const SimDisk::Call& call);
  SimNetwork::ExtraDelay packet_delay(int from, int to);
  const FaultRule* consume(FaultKind kind, int rank);
  FaultCount& count_of(const FaultRule& rule);
  // The effect lasts until then.
  void count(const FaultRule& rule, TimePoint until = {}) {
    ++count_of(rule).count;
    progress_.disturb(until);
  }
  RankEnd end_of(int rank) const;

  Job job_;
  SimDisk& disk_;
  SimSeams seams_;
  Options options_;
  RandomKey draw_;
  ScheduledFaults faults_;
  SimAttempt attempt_;
  std::vector<ActiveFault> active_faults_;
  ProgressWatch progress_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Device> devices_;  // by rank
  ProcessStateSwitch states_;
  TokenScheduler scheduler_;
  SimLinks links_;
  SimNetwork network_;
  SimFabric fabric_;
  uint64_t draws_ = 0;
  int64_t newest_step_ = 0;  // committed by any rank in this attempt
  bool lost_power_ = false;
};

}  // namespace tutti
