#include "sim/simulate/simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "io/checkpoint/checkpoint.h"
#include "job/make_job.h"
#include "runtime/error.h"
#include "runtime/lack_of_memory.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr const char* kRunDir = "/simulated/run";
constexpr double kLongestTimeoutS = 1e8;
// Of a standstill beyond twice the longest of the run without faults: until heartbeats show that a rank is
// gone, and mpirun has ended the other ranks.
constexpr Nanoseconds kMoreStall = std::chrono::seconds(5);

// "9-003". Three digits sort as text, since at most 100 attempts have faults.
std::string nonce_of(uint64_t seed, int attempt) {
  char text[48];
  std::snprintf(text, sizeof text, "%llu-%03d", static_cast<unsigned long long>(seed), attempt);
  return text;
}

void read_newest(SimDisk& disk, const Job& job, KnownCheckpoints& known, SimRun& run) {
  const UncountedProbes uncounted;
  const Checkpoint newest = newest_good_checkpoint(*disk.view(0), job.checkpoints,
                                                   {[](const std::string&) {}}, job.settings.checkpoint.set);
  if (newest.folder.empty()) return;
  const KnownCheckpoint& saved = known.read(*disk.view(0), newest.folder);
  run.weights = saved.bits.weights;
  run.saved_whole = saved.bits.all != 0;
  run.saved_step = saved.step;
}

std::string faults_text(const FaultCounts& faults) {
  std::string text;
  for (const auto& [label, fault] : faults)
    if (fault.count > 0)
      text +=
          (text.empty() ? "" : ", ") + label + (fault.count > 1 ? " x" + std::to_string(fault.count) : "");
  return text.empty() ? "no faults" : text;
}

std::string summary_of(const SimAttempt& attempt) {
  const std::string from = attempt.resumed_at < 0    ? "did not come to train"
                           : attempt.resumed_at == 0 ? "from the beginning"
                                                     : "from step " + std::to_string(attempt.resumed_at);
  std::string published;
  for (const auto& [step, bits] : attempt.published) published += " " + std::to_string(step);
  return attempt.name() + ": " + from + "; " + faults_text(attempt.faults) + "; published" +
         (published.empty() ? " nothing" : published) + "; " + attempt.end_text() + " after " +
         std::to_string(seconds(attempt.took.time_since_epoch())) + " s";
}

// If no training begins even without faults, the recipe is wrong: a missing checkpoint, for example.
void require_trains(const SimAttempt& attempt) {
  if (attempt.resumed_at >= 0 || attempt.well() || !attempt.stuck.empty()) return;
  const RankEnd& first = attempt.ends.front();
  const auto lacking =
      std::ranges::find_if(attempt.ends, [](const RankEnd& end) { return lacks_memory(end.kind); });
  const std::string why =
      first.kind == EndKind::kRefused ? first.reason : "the run cannot start: " + attempt.end_text();
  throw_run_error(RunError(lacking == attempt.ends.end() ? EndKind::kUserError : lacking->kind, why), "");
}

SeedResult result_of(uint64_t seed, const SimRun& run) {
  SeedResult result;
  result.seed = seed;
  result.weights = run.weights;
  result.attempts = static_cast<int>(run.attempts.size());
  RandomKey deliveries(0, "starts"), draws(0, "draws");
  for (const SimAttempt& attempt : run.attempts) {
    deliveries = deliveries.fold_in(attempt.deliveries);
    draws = draws.fold_in(attempt.next_draw);
    for (const auto& [label, fault] : attempt.faults) result.faults[label] += fault.count;
    for (const auto& rank : attempt.steps) result.rank_steps += static_cast<int64_t>(rank.size());
    result.summary.push_back(summary_of(attempt));
  }
  result.deliveries = deliveries.bits();
  result.next_draw = draws.bits();
  return result;
}

}  // namespace

Job simulated_job(const Setting& recipe, int ranks) {
  const RunSettings settings = RunSettings::read(recipe);
  if (settings.train.stop_at.value() > 0)
    recipe.at("train").at("stop_at").fail("a simulated run trains to its end; leave the key out");
  begin_process(settings);
  JobOptions options;
  options.world = ranks;
  options.run_dir = kRunDir;
  options.resume = "auto";
  options.makes_folders = false;
  Job job = make_job(recipe, options);
  job.checkpoints = job.run_dir + "/checkpoints";
  return job;
}

bool SeedResult::same_run(const SeedResult& other) const {
  return deliveries == other.deliveries && next_draw == other.next_draw && weights == other.weights &&
         faults == other.faults && summary == other.summary;
}

Simulation::Simulation(const Setting& recipe, int ranks, FaultPlan plan, SimSeams seams, SimSeams reference)
    : plan_(std::move(plan)),
      seams_(std::move(seams)),
      reference_seams_(std::move(reference)),
      job_(simulated_job(recipe, ranks)) {
  fault_free_ = run_to_end({.job = job_, .seams = reference_seams_}, fault_free_findings_);
  require_trains(fault_free_.attempts.front());
  if (fault_free_findings_.empty()) check(fault_free_, fault_free_findings_);
  for (auto& finding : fault_free_findings_) finding = "without faults: " + finding;
}

// The longest time between two commits, with the delays of the plan and the time to give up hanging ranks.
Nanoseconds Simulation::timeout() const {
  double more = 4 * seconds(job_.settings.train.hang_timeout);
  for (const FaultRule& rule : plan_.rules)
    if (rule.kind != FaultKind::kClockJump) more += rule.seconds * static_cast<double>(rule.count);
  const double limit_s = std::min(seconds(SimWorld::Options().timeout) + more, kLongestTimeoutS);
  return std::chrono::seconds(static_cast<int64_t>(limit_s));
}

SimAttempt Simulation::run_attempt(const RunOptions& run_options, int number, SimDisk& disk,
                                   Findings& findings) const {
  Job job = run_options.job;
  job.nonce = nonce_of(run_options.seed, number);
  SimWorld::Options options;
  options.attempt = number;
  options.seed = run_options.seed;
  if (!fault_free_.attempts.empty()) {
    options.steps = std::max<int64_t>(1, fault_free_.attempts[0].last_step());
    options.most_stall = 2 * fault_free_.attempts[0].longest_stall + kMoreStall;
  }
  options.timeout = timeout();
  options.journals = run_options.journals;
  options.on_published = [&](const SimDisk& now) {
    const UncountedProbes uncounted;
    return check_published(now, job_, RandomKey(run_options.seed, "published").fold_in(number), known_,
                           findings);
  };
  SimAttempt seen;
  bool lost_power = false;
  {
    const FaultPlan* faults =
        run_options.plan && number < run_options.plan->starts ? run_options.plan : nullptr;
    SimWorld world(job, disk, faults, run_options.seams, options);
    seen = world.run();
    seen.number = number + 1;
    lost_power = world.lost_power();
  }
  if (lost_power) disk.lose_power(RandomKey(run_options.seed, "power").fold_in(number));
  const UncountedProbes uncounted;
  check_checkpoints(disk, job_, known_, findings);
  return seen;
}

SimRun Simulation::run_to_end(const RunOptions& run_options, Findings& findings) const {
  SimRun run;
  SimDisk disk;
  const int with_faults = run_options.plan ? run_options.plan->starts : 0;
  for (int number = 0;; ++number) {
    run.attempts.push_back(run_attempt(run_options, number, disk, findings));
    const SimAttempt& last = run.attempts.back();
    if (number >= with_faults || !last.stuck.empty() || (last.well() && !last.stopped())) break;
  }
  read_newest(disk, job_, known_, run);
  run.logged = logged_lines(*disk.view(0), job_.run_dir);
  return run;
}

// The attempt to compare bits with if memory ran out: one with enough memory and these numbers of
// microbatches set in its recipe.
const SimAttempt& Simulation::with_microbatches(const std::vector<int>& counts) const {
  const bool plain = std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
  Job job = job_;
  auto& steps = job.settings.train.accumulation.steps;
  auto& budget = job.settings.device.memory_budget_mb.value.values;
  if ((plain && budget.empty()) || !steps.empty()) return fault_free_.attempts.front();
  const auto [known, fresh] = by_microbatches_.try_emplace(counts);
  if (!fresh) return known->second;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (i == 0 || counts[i] != counts[i - 1]) steps.emplace_back(i, counts[i]);
  budget.clear();
  Findings none;
  return known->second = run_to_end({.job = job, .seams = reference_seams_}, none).attempts.front();
}

void Simulation::check(const SimRun& run, Findings& findings) const {
  const auto in_parts = [this](const std::vector<int>& counts) -> const SimAttempt& {
    return with_microbatches(counts);
  };
  const Reference reference{job_, plan_, fault_free_, in_parts};
  check_waiting(run, findings);
  check_ends(reference, run, findings);
  check_stops(run, findings);
  check_hangs(reference, run, findings);
  check_progress(run, findings);
  check_ranks_agree(run, findings);
  check_bits(reference, run, findings);
  check_samples(reference, run, findings);
  check_memory(run, findings);
  check_nothing_lost(run, findings);
  check_logs(reference, run, findings);
  check_liveness(run, findings);
}

SeedResult Simulation::run(uint64_t seed) const {
  Findings findings = fault_free_findings_;
  const FaultPlan* plan = plan_.rules.empty() ? nullptr : &plan_;
  const SimRun seen = run_to_end({job_, seams_, seed, plan, journals_}, findings);
  check(seen, findings);
  SeedResult result = result_of(seed, seen);
  result.findings = std::move(findings);
  return result;
}

SeedResult Simulation::run_twice(uint64_t seed) const {
  SeedResult first = run(seed);
  const SeedResult second = run(seed);
  if (!first.same_run(second)) first.findings.push_back("a second run of the same seed differed");
  return first;
}

}  // namespace tutti
