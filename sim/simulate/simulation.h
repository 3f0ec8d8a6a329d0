#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/job.h"
#include "sim/faults/fault_plan.h"
#include "sim/invariants/history.h"
#include "sim/invariants/invariants.h"
#include "sim/simulate/sim_world.h"

namespace tutti {

// What came of one seed.
struct SeedResult {
  uint64_t seed = 0;
  Findings findings;        // what of the invariants broke; none = well
  uint64_t deliveries = 0;  // a hash of their order, over all starts
  uint64_t next_draw = 0;
  uint64_t weights = 0;
  FaultCounts faults;
  int starts = 0;
  int64_t rank_steps = 0;
  std::vector<std::string> summary;  // a line a start

  bool same_run(const SeedResult& other) const;
};

// The job of a simulation. Throws UserError.
Job simulated_job(const Setting& recipe, int ranks);

// Simulates one recipe on a number of ranks under a fault plan, seed by seed: the job is started, whenever it
// ends before its time it is started again on the same disk to resume, and once the plan's starts are over
// it has to come to its end. The invariants are checked on what was seen.
class Simulation {
 public:
  // Runs the job without faults first: with it, and with others like it, runs are compared, and they have
  // `reference` in place of `seams`. Throws UserError, also where that one does not come to train.
  Simulation(const Setting& recipe, int ranks, FaultPlan plan, SimSeams seams = {}, SimSeams reference = {});

  // From here on runs leave their journals in a run's folder, a start each.
  void keep_journals(std::string run_dir) { journals_ = std::move(run_dir); }

  SeedResult run(uint64_t seed) const;
  // Runs the seed twice; it is a finding when the two are not alike.
  SeedResult run_twice(uint64_t seed) const;

  const RunSeen& fault_free() const { return fault_free_; }

 private:
  struct Orders {
    const Job& job;
    const SimSeams& seams;
    uint64_t seed = 0;
    const FaultPlan* plan = nullptr;  // null: no faults
    std::string journals = {};
  };
  const StartSeen& in_microbatches(const std::vector<int>& counts) const;
  RunSeen whole_run(const Orders& orders, Findings& findings) const;
  StartSeen one_start(const Orders& orders, int number, SimDisk& disk, Findings& findings) const;
  Nanoseconds timeout() const;
  void check(const RunSeen& run, Findings& findings) const;

  FaultPlan plan_;
  SimSeams seams_, reference_seams_;
  Job job_;
  std::string journals_;  // "" = none are kept
  RunSeen fault_free_;
  mutable std::map<std::vector<int>, StartSeen> by_microbatches_;  // runs without faults
  mutable KnownCheckpoints known_;
  Findings fault_free_findings_;
};

}  // namespace tutti
