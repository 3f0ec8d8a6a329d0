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

// The result of one seed.
struct SeedResult {
  uint64_t seed = 0;
  Findings findings;        // violated invariants
  uint64_t deliveries = 0;  // a hash of the order of deliveries of all attempts
  uint64_t next_draw = 0;
  uint64_t weights = 0;
  std::map<std::string, int64_t> faults;  // how often each had an effect, by FaultRule::label
  int attempts = 0;
  int64_t rank_steps = 0;
  std::vector<std::string> summary;              // one line for each attempt
  std::map<std::string, int64_t> refusals = {};  // of drawn recipes, by the reason
  std::vector<std::string> probes = {};          // names of the probes that were hit

  bool same_run(const SeedResult& other) const;
};

// The job of a simulation. Throws UserError.
Job simulated_job(const Setting& recipe, int ranks);

// Simulates a recipe on several ranks under a fault plan, seed by seed. A job that ends early is started
// again on the same disk and resumes; after the attempts with faults the job must train to its end. Then the
// invariants are checked.
class Simulation {
 public:
  // First runs the job without faults. This run, and the other runs without faults that the checks need, use
  // the seams `reference`. Throws UserError if the job is invalid or cannot begin to train.
  Simulation(const Setting& recipe, int ranks, FaultPlan plan, SimSeams seams = {}, SimSeams reference = {});

  // Later runs write the journals of their attempts to this run folder.
  void keep_journals(std::string run_dir) { journals_ = std::move(run_dir); }

  SeedResult run(uint64_t seed) const;
  // Runs the seed twice; a difference is a finding.
  SeedResult run_twice(uint64_t seed) const;

  const SimRun& fault_free() const { return fault_free_; }

 private:
  struct RunOptions {
    const Job& job;
    const SimSeams& seams;
    uint64_t seed = 0;
    const FaultPlan* plan = nullptr;  // null: no faults
    std::string journals = {};
  };
  const SimAttempt& with_microbatches(const std::vector<int>& counts) const;
  SimRun run_to_end(const RunOptions& options, Findings& findings) const;
  SimAttempt run_attempt(const RunOptions& options, int number, SimDisk& disk, Findings& findings) const;
  Nanoseconds timeout() const;
  void check(const SimRun& run, Findings& findings) const;

  FaultPlan plan_;
  SimSeams seams_, reference_seams_;
  Job job_;
  std::string journals_;  // "" = none
  SimRun fault_free_;
  mutable std::map<std::vector<int>, SimAttempt> by_microbatches_;  // without faults
  mutable KnownCheckpoints known_;
  Findings fault_free_findings_;
};

}  // namespace tutti
