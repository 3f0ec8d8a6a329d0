#include "sim/simulate/simulate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "io/journal/recorded_run.h"
#include "job/recipe_catalogs.h"
#include "recipe/recipe_space.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/lack_of_memory.h"
#include "runtime/printable.h"
#include "runtime/probe/probe.h"
#include "runtime/process/command_output.h"
#include "runtime/process/shell.h"
#include "runtime/process/this_process.h"
#include "runtime/text.h"
#include "sim/simulate/drawn_files.h"
#include "sim/simulate/drawn_seed.h"
#include "sim/simulate/probe_counts.h"
#include "sim/simulate/seed_workers.h"
#include "sim/simulate/shrink.h"

namespace tutti {
namespace {

constexpr std::chrono::seconds kHeartbeatInterval(5);

FaultPlan plan_of(const SimulateOptions& options, int ranks) {
  return options.faults.empty() ? FaultPlan() : read_fault_plan(options.faults, ranks);
}

// Flushes, since this process may crash later.
void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Print heartbeats for the parent process, which kills a silent worker.
SimSeams heartbeat_seams() {
  using Clock = std::chrono::steady_clock;
  SimSeams seams;
  seams.on_event = [last = std::make_shared<Clock::time_point>(Clock::now())] {
    const Clock::time_point now = Clock::now();
    if (now - *last < kHeartbeatInterval) return;
    *last = now;
    print_line(heartbeat_line());
  };
  return seams;
}

using RunSeed = std::function<SeedResult(uint64_t seed)>;

// Null if the job cannot start; the parent process reports the reason.
RunSeed begin_share(const Setting& recipe, const SimulateOptions& options) try {
  const SimSeams seams = heartbeat_seams();
  if (RecipeSpace::is_space(recipe)) {
    const Setting plan = options.faults.empty() ? Setting() : read_recipe(options.faults);
    const DrawnSeedOptions drawn{options.ranks, plan, options.once, options.run_dir, seams, seams};
    return [space = RecipeSpace(recipe), drawn](uint64_t seed) { return simulate_drawn(space, drawn, seed); };
  }
  auto simulation = std::make_shared<Simulation>(resolve_recipe(recipe), options.ranks,
                                                 plan_of(options, options.ranks), seams, seams);
  simulation->keep_journals(options.run_dir);
  return [simulation, once = options.once](uint64_t seed) {
    return once ? simulation->run(seed) : simulation->run_twice(seed);
  };
} catch (const RunError& error) {
  if (exit_code(error.kind()) != 2 && !lacks_memory(error.kind())) throw;
  print_line(refusal_line(error));
  return nullptr;
}

int simulate_share(const Setting& recipe, const SimulateOptions& options) {
  const RunSeed run = begin_share(recipe, options);
  if (!run) return 2;
  for (uint64_t seed = options.first; seed <= options.last; seed += static_cast<uint64_t>(options.share_of)) {
    print_line(begin_line(seed));
    clear_probes();
    SeedResult result = run(seed);
    result.probes = hit_probes();
    print_line(result_line(result));
  }
  return 0;
}

// Journals of another seed could be taken for the newest attempt.
void require_no_journals(const std::string& run_dir) {
  if (run_dir.empty() || PosixDisk().list(journals_folder(run_dir)).empty()) return;
  throw UserError("--run-dir " + run_dir + ": there are journals in it; name a folder that has none");
}

// The arguments that repeat these seeds.
std::vector<std::string> arguments_of(const SimulateOptions& options, const std::string& seeds) {
  std::vector<std::string> words = {
      "simulate", options.recipe.path, "--ranks", std::to_string(options.ranks), "--seeds", seeds};
  for (const std::string& override_text : options.recipe.overrides)
    words.insert(words.end(), {"--set", override_text});
  if (!options.faults.empty()) words.insert(words.end(), {"--faults", options.faults});
  return words;
}

std::string reproduction(const SimulateOptions& options, uint64_t seed) {
  std::string line = "tutti";
  for (const std::string& word : arguments_of(options, std::to_string(seed))) line += " " + shell_word(word);
  return line + "  # " + build_and_commit("tutti");
}

std::vector<std::string> worker_command(const SimulateOptions& options, const SeedShare& share) {
  auto words = arguments_of(options, std::to_string(share.first) + ".." + std::to_string(share.last));
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe"));
  words.insert(words.end(), {"--share-of", std::to_string(share.stride)});
  if (options.once) words.push_back("--once");
  if (!options.run_dir.empty()) words.insert(words.end(), {"--run-dir", options.run_dir});
  return words;
}

// The results of all seeds.
class Tally {
 public:
  Tally(const SimulateOptions& options, int most_ranks, bool drawn)
      : options_(options), most_ranks_(most_ranks), plan_(plan_of(options, most_ranks)), drawn_(drawn) {}

  void add(const SeedResult& result) {
    ++seeds_;
    starts_ += result.attempts;
    rank_steps_ += result.rank_steps * (options_.once ? 1 : 2);
    if (result.attempts > 0) {  // 0 if the worker crashed
      orders_.insert(result.deliveries);
      weights_.insert(result.weights);
    }
    for (const auto& [label, count] : result.faults) faults_[label] += count;
    for (const auto& [why, count] : result.refusals) refusals_[why] += count;
    probes_.add(result.probes);
    if (options_.first == options_.last)
      for (const std::string& line : result.summary) print_line(terminal_text("  " + line));
    if (result.findings.empty()) return;
    fail(result.seed, result.findings.front());
    if (!first_failed_) first_failed_ = result;
  }

  int print(double took_s, int jobs) const;
  const std::optional<SeedResult>& first_failed() const { return first_failed_; }

 private:
  // Prints immediately: a simulation may take a night and be interrupted.
  void fail(uint64_t seed, const std::string& finding) {
    ++failed_;
    print_line(terminal_text("seed " + std::to_string(seed) + ": " + finding + "\n  " +
                             reproduction(options_, seed)));
  }
  std::string weights_text() const;
  int64_t count_of(const FaultRule& rule) const {
    const auto count = faults_.find(rule.label);
    return count == faults_.end() ? 0 : count->second;
  }
  std::string why_impossible(const FaultRule& rule) const;
  bool all_faults_happened() const {
    return std::all_of(plan_.rules.begin(), plan_.rules.end(), [this](const FaultRule& rule) {
      return count_of(rule) > 0 || !why_impossible(rule).empty();
    });
  }
  void print_faults() const;
  void print_refusals() const;
  void print_probes() const;

  const SimulateOptions& options_;
  int most_ranks_;  // of all seeds
  FaultPlan plan_;
  bool drawn_;  // each seed has a recipe of its own
  int64_t seeds_ = 0, starts_ = 0, rank_steps_ = 0, failed_ = 0;
  std::set<uint64_t> orders_, weights_;
  std::optional<SeedResult> first_failed_;
  std::map<std::string, int64_t> faults_, refusals_;
  ProbeCounts probes_{probe_places()};
};

std::string Tally::weights_text() const {
  if (weights_.size() != 1) return std::to_string(weights_.size()) + " different";
  char digest[32];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(*weights_.begin()));
  return digest + std::string(" in all");
}

// Why the fault cannot happen on so few ranks, or "".
std::string Tally::why_impossible(const FaultRule& rule) const {
  if (rule.needs_several_ranks() && most_ranks_ == 1) return "cannot happen on one rank";
  // Overtaking needs two senders and a receiver.
  if (rule.kind == FaultKind::kReorder && most_ranks_ < 3) return "cannot happen on fewer than three ranks";
  return "";
}

void row(const char* name, const std::string& text) {
  print_text("  " + formatted("%-10s ", name) + text + '\n');
}

void Tally::print_faults() const {
  auto others = faults_;
  for (const FaultRule& rule : plan_.rules) {
    const std::string why = why_impossible(rule);
    const std::string none = why.empty() ? "never happened" : why;
    row("fault", rule.label + ": " + (count_of(rule) > 0 ? std::to_string(count_of(rule)) : none));
    others.erase(rule.label);
  }
  for (const auto& [label, count] : others) row("fault", label + ": " + std::to_string(count));
}

// The most frequent first.
void Tally::print_refusals() const {
  constexpr std::ptrdiff_t kMostShown = 10;
  int64_t all = 0;
  std::vector<std::pair<int64_t, std::string>> reasons;
  for (const auto& [why, count] : refusals_) all += count, reasons.emplace_back(-count, why);
  std::ranges::sort(reasons);
  row("refused", std::to_string(all) + " drawn recipes, for " + std::to_string(reasons.size()) + " reasons");
  for (auto reason = reasons.begin(); reason != reasons.end() && reason - reasons.begin() < kMostShown;
       ++reason)
    row("", std::to_string(-reason->first) + " times: " + reason->second);
}

void Tally::print_probes() const {
  constexpr std::size_t kMostShown = 10;
  row("probes", probes_.summary() + (options_.all_probes ? "" : "; --all-probes lists the others"));
  if (!options_.all_probes) return;
  for (const std::string& probe : probes_.never_hit()) row("never hit", probe);
  for (const std::string& probe : probes_.rarest(kMostShown)) row("rarest", probe);
}

int Tally::print(double took_s, int jobs) const {
  const std::string where =
      drawn_ ? " drawn recipes"
             : " on " + std::to_string(options_.ranks) + (options_.ranks == 1 ? " rank" : " ranks");
  row("seeds", std::to_string(seeds_) + where + (options_.once ? "" : ", each twice"));
  if (drawn_) print_refusals();
  row("attempts", std::to_string(starts_));
  row("orders", std::to_string(orders_.size()) + " different orders of delivery");
  row("weights", weights_text());
  print_faults();
  print_probes();
  char speed[96];
  std::snprintf(speed, sizeof speed, "%lld rank-steps in %.1f s, %.0f a second and process",
                static_cast<long long>(rank_steps_), took_s,
                static_cast<double>(rank_steps_) / took_s / jobs);
  row("speed", speed);
  const bool all_happened = all_faults_happened();
  std::string failed = std::to_string(failed_);
  if (failed_ > 0) failed += ", listed above";
  if (!all_happened) failed += "; a fault of the plan did not happen in any seed, so the exit code is 1";
  const bool lacks_probes = options_.all_probes && !probes_.all_hit();
  if (lacks_probes) failed += "; a probe was never hit, so the exit code is 1";
  row("failed", failed);
  return failed_ == 0 && all_happened && !lacks_probes ? 0 : 1;
}

constexpr uint64_t kSeedsOfACase = 8;
constexpr int kMostCases = 400;

std::string command_of(const FailingCase& failing, const std::string& folder, const std::string& seeds) {
  SimulateOptions options;
  options.recipe.path = folder + "/recipe.toml";
  options.ranks = failing.ranks;
  if (!failing.plan.is_none()) options.faults = folder + "/plan.toml";
  std::string line;
  for (const std::string& word : arguments_of(options, seeds)) line += " " + shell_word(word);
  return line + " --once";
}

void write_case(const FailingCase& failing, const std::string& folder) {
  std::ofstream(folder + "/recipe.toml") << write_recipe(failing.recipe);
  if (!failing.plan.is_none()) std::ofstream(folder + "/plan.toml") << write_recipe(failing.plan);
}

// Simulates some seeds in a process of its own, which may crash.
std::optional<SeedFinding> violation_of(const FailingCase& failing, const std::string& folder) {
  write_case(failing, folder);
  CommandOutput command(
      shell_word(std::filesystem::read_symlink("/proc/self/exe")) +
      command_of(failing, folder,
                 std::to_string(failing.seed) + ".." + std::to_string(failing.seed + kSeedsOfACase - 1)) +
      " 2>&1");
  std::string text;
  char bytes[4096];
  while (const std::size_t size = command.read(bytes)) text.append(bytes, size);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("seed ") || colon == line.npos) continue;
    return SeedFinding{std::stoull(line.substr(5, colon - 5)), line.substr(colon + 2)};
  }
  return std::nullopt;
}

// Prints the command of the smaller case.
void shrink_first(const Setting& recipe, const SimulateOptions& options, const SeedResult& failed) {
  FailingCase failing;
  if (RecipeSpace::is_space(recipe))
    failing = failing_case(RecipeSpace(recipe), failed, options.ranks);
  else
    failing = {with_absolute_paths(recipe, resolve_recipe(recipe)),
               options.ranks,
               {},
               failed.seed,
               failed.findings.front()};
  if (!options.faults.empty()) failing.plan = read_recipe(options.faults);
  const std::string candidates = options.shrink + "/candidate";
  std::filesystem::create_directories(candidates);
  print_line("shrinks seed " + std::to_string(failed.seed) + " in " + options.shrink);
  const FailingCase small = shrink(
      failing, [&](const FailingCase& candidate) { return violation_of(candidate, candidates); }, kMostCases,
      [&](const FailingCase& smaller, int tries) {
        write_case(smaller, options.shrink);
        print_line("  smaller after " + std::to_string(tries) + " tries");
      });
  write_case(small, options.shrink);
  std::filesystem::remove_all(candidates);
  print_line("seed " + std::to_string(small.seed) + ": " + terminal_text(small.finding) + "\n  tutti" +
             command_of(small, options.shrink, std::to_string(small.seed)));
}

}  // namespace

int simulate(const Setting& recipe, const SimulateOptions& options) {
  if (!options.write.empty()) {
    if (!options.faults.empty() || !options.shrink.empty())
      throw UserError("--write simulates no seed: leave out --faults and --shrink");
    if (!RecipeSpace::is_space(recipe))
      throw UserError("--write: there is no [[draw]] in " + options.recipe.path);
    write_drawn_recipes(recipe, {options.first, options.last, options.ranks, options.write, options.check});
    return 0;
  }
  if (options.share_of > 0) return simulate_share(recipe, options);
  if (!options.run_dir.empty() && options.first != options.last)
    throw UserError("--run-dir " + options.run_dir +
                    ": journals are kept of one seed only; choose it with --seeds");
  require_no_journals(options.run_dir);
  const bool drawn = RecipeSpace::is_space(recipe);
  const int most_ranks = drawn ? RecipeSpace(recipe).most_ranks(options.ranks) : options.ranks;
  if (!drawn)
    simulated_job(resolve_recipe(recipe),
                  options.ranks);  // reports an invalid job once, before any worker does
  Tally tally(options, most_ranks, drawn);
  const int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(allowed_cores().size());
  const auto seeds = static_cast<int64_t>(options.last - options.first + 1);
  const auto print = [&, began = std::chrono::steady_clock::now()] {
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return tally.print(took_s, static_cast<int>(std::min<int64_t>(jobs, seeds)));
  };
  try {
    simulate_seeds(
        options.first, options.last, jobs,
        [&](const SeedShare& share) { return worker_command(options, share); },
        [&](const SeedResult& result) { tally.add(result); });
  } catch (const OperatingError&) {
    print();  // the results so far
    throw;
  }
  const int code = print();
  if (!options.shrink.empty() && tally.first_failed()) shrink_first(recipe, options, *tally.first_failed());
  return code;
}

}  // namespace tutti
