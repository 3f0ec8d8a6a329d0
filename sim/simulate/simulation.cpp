#include "sim/simulate/simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "training/time/time.h"

namespace tutti {
namespace {

constexpr const char* kRunDir = "/simulated/run";
constexpr double kLongestTimeoutS = 1e8;

Nanoseconds hang_timeout_of(const Job& job) {
  return std::chrono::seconds(Time::parse(job.recipe.at("train").at("hang_timeout")).count());
}

// "9-003": they are sorted as text, and a plan has 100 starts at most.
std::string nonce_of(uint64_t seed, int start) {
  char text[48];
  std::snprintf(text, sizeof text, "%llu-%03d", static_cast<unsigned long long>(seed), start);
  return text;
}

void look_at_newest(SimDisk& disk, const Job& job, KnownCheckpoints& known, RunSeen& run) {
  const Checkpoint newest = newest_good_checkpoint(
      *disk.view(0), job.checkpoints, [](const std::string&) {}, checkpoint_set(job.recipe));
  if (newest.folder.empty()) return;
  const KnownCheckpoint& saved = known.look(*disk.view(0), newest.folder);
  run.weights = saved.bits.weights;
  run.saved_whole = saved.bits.all != 0;
  run.saved_step = saved.step;
}

std::string faults_text(const FaultCounts& faults) {
  std::string text;
  for (const auto& [name, count] : faults)
    if (count > 0)
      text += (text.empty() ? "" : ", ") + name + (count > 1 ? " x" + std::to_string(count) : "");
  return text.empty() ? "no faults" : text;
}

std::string summary_of(const StartSeen& start, std::size_t number) {
  const std::string from = start.resumed_at < 0    ? "did not come to train"
                           : start.resumed_at == 0 ? "from the beginning"
                                                   : "from step " + std::to_string(start.resumed_at);
  std::string published;
  for (const auto& [step, bits] : start.published) published += " " + std::to_string(step);
  return "start " + std::to_string(number + 1) + ": " + from + "; " + faults_text(start.faults) +
         "; published" + (published.empty() ? " nothing" : published) + "; " + start.end_text() + " after " +
         std::to_string(seconds(start.took.time_since_epoch())) + " s";
}

// What even no fault keeps from training is the recipe's: a checkpoint to go on from that is missing.
void require_trains(const StartSeen& start) {
  if (start.resumed_at >= 0 || start.well() || !start.stuck.empty()) return;
  const RankEnd& first = start.ends.front();
  const bool refused = first.exit_code == 2 && !first.reason.empty();
  throw UserError(refused ? first.reason : "the run cannot start: " + start.end_text());
}

SeedResult summary(uint64_t seed, const RunSeen& run) {
  SeedResult result;
  result.seed = seed;
  result.weights = run.weights;
  result.starts = static_cast<int>(run.starts.size());
  RandomKey deliveries(0, "starts"), draws(0, "draws");
  for (const StartSeen& start : run.starts) {
    deliveries = deliveries.fold_in(start.deliveries);
    draws = draws.fold_in(start.next_draw);
    for (const auto& [name, count] : start.faults) result.faults[name] += count;
    for (const auto& rank : start.steps) result.rank_steps += static_cast<int64_t>(rank.size());
    result.summary.push_back(summary_of(start, result.summary.size()));
  }
  result.deliveries = deliveries.bits();
  result.next_draw = draws.bits();
  return result;
}

}  // namespace

Job simulated_job(const Setting& recipe, int ranks) {
  begin_process(recipe);
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
  fault_free_ = whole_run({.job = job_, .seams = reference_seams_}, fault_free_findings_);
  require_trains(fault_free_.starts.front());
  if (fault_free_findings_.empty()) check(fault_free_, fault_free_findings_);
  for (auto& finding : fault_free_findings_) finding = "without faults: " + finding;
}

// What a step may take: what the plan adds comes on top, and ranks that hang are given up in time.
Nanoseconds Simulation::timeout() const {
  double more = 4 * seconds(hang_timeout_of(job_));
  for (const FaultRule& rule : plan_.rules) more += rule.seconds * static_cast<double>(rule.count);
  const double whole = std::min(seconds(SimWorld::Options().timeout) + more, kLongestTimeoutS);
  return std::chrono::seconds(static_cast<int64_t>(whole));
}

StartSeen Simulation::one_start(const Orders& orders, int number, SimDisk& disk, Findings& findings) const {
  Job job = orders.job;
  job.nonce = nonce_of(orders.seed, number);
  SimWorld::Options options;
  options.start = number;
  options.seed = orders.seed;
  if (!fault_free_.starts.empty()) options.steps = std::max<int64_t>(1, fault_free_.starts[0].last_step());
  options.timeout = timeout();
  options.journals = orders.journals;
  options.on_published = [&](const SimDisk& now) {
    return check_published(now, job_, RandomKey(orders.seed, "published").fold_in(number), known_, findings);
  };
  StartSeen seen;
  bool lost_power = false;
  {
    const FaultPlan* faults = orders.plan && number < orders.plan->starts ? orders.plan : nullptr;
    SimWorld world(job, disk, faults, orders.seams, options);
    seen = world.run();
    lost_power = world.lost_power();
  }
  if (lost_power) disk.lose_power(RandomKey(orders.seed, "power").fold_in(number));
  check_checkpoints(disk, job_, known_, findings);
  return seen;
}

RunSeen Simulation::whole_run(const Orders& orders, Findings& findings) const {
  RunSeen run;
  SimDisk disk;
  const int with_faults = orders.plan ? orders.plan->starts : 0;
  for (int number = 0;; ++number) {
    run.starts.push_back(one_start(orders, number, disk, findings));
    const StartSeen& last = run.starts.back();
    if (number >= with_faults || !last.stuck.empty() || (last.well() && !last.stopped())) break;
  }
  look_at_newest(disk, job_, known_, run);
  run.logged = logged_lines(*disk.view(0), job_.run_dir);
  return run;
}

// What the bits are when a run out of memory has changed the number of microbatches: those of a run that was
// given the numbers by hand, and memory enough.
const StartSeen& Simulation::in_microbatches(const std::vector<int>& counts) const {
  const bool plain = std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
  const Setting& own = job_.recipe.at("train").at("grad_accum");
  Job job = job_;
  Setting* budget = job.recipe.find("device")->find("memory_budget_mb");
  const bool scarce = budget && !budget->is_none();
  if ((plain && !scarce) || !own.is_text()) return fault_free_.starts.front();
  const auto [found, fresh] = by_microbatches_.try_emplace(counts);
  if (!fresh) return found->second;
  const auto setting = [&own](Setting::Value value) {
    return Setting(std::move(value), own.path, own.position);
  };
  Setting::Array steps;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (i == 0 || counts[i] != counts[i - 1])
      steps.push_back(setting(Setting::Array{setting(static_cast<int64_t>(i)), setting(int64_t{counts[i]})}));
  job.recipe.find("train")->find("grad_accum")->value = std::move(steps);
  if (scarce) budget->value = {};
  Findings none;
  return found->second = whole_run({.job = job, .seams = reference_seams_}, none).starts.front();
}

void Simulation::check(const RunSeen& run, Findings& findings) const {
  const auto in_parts = [this](const std::vector<int>& counts) -> const StartSeen& {
    return in_microbatches(counts);
  };
  const RunFacts facts{job_, plan_, fault_free_, hang_timeout_of(job_), in_parts};
  check_waiting(run, findings);
  check_blocked_senders(run, findings);
  check_ends(facts, run, findings);
  check_stops(run, findings);
  check_hangs(facts, run, findings);
  check_progress(run, findings);
  check_ranks_agree(run, findings);
  check_bits(facts, run, findings);
  check_samples(facts, run, findings);
  check_memory(run, findings);
  check_nothing_lost(run, findings);
  check_logs(facts, run, findings);
}

SeedResult Simulation::run(uint64_t seed) const {
  Findings findings = fault_free_findings_;
  const FaultPlan* plan = plan_.rules.empty() ? nullptr : &plan_;
  const RunSeen seen = whole_run({job_, seams_, seed, plan, journals_}, findings);
  check(seen, findings);
  SeedResult result = summary(seed, seen);
  result.findings = std::move(findings);
  return result;
}

SeedResult Simulation::run_twice(uint64_t seed) const {
  SeedResult first = run(seed);
  const SeedResult second = run(seed);
  if (!first.same_run(second)) first.findings.push_back("a second run of the same seed went otherwise");
  return first;
}

}  // namespace tutti
