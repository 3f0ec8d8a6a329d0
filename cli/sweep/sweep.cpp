// The subcommand `sweep`.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "analysis/comparison/run_table.h"
#include "cli/commands.h"
#include "cli/library_command.h"
#include "cli/sweep/sweep_plan.h"
#include "cli/sweep/trial_runner.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/process/shell.h"
#include "runtime/process/this_process.h"
#include "runtime/regular_file.h"
#include "runtime/terminal_output.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kSweepLock = "sweep.lock";

struct SweepArguments {
  SweepPlan plan;
  std::string run_dir;  // "" = runs/ and the recipe's run_name, "-sweep"
  int jobs = 1;
};

class Sweep {
 public:
  Sweep(SweepPlan plan, std::string folder, int jobs)
      : plan_(std::move(plan)), folder_(std::move(folder)), runner_(plan_, folder_, jobs) {}

  int run() {
    print_text("sweep of " + std::to_string(plan_.trials.size()) +
               (plan_.trials.size() == 1 ? " trial in " : " trials in ") + on_one_line(folder_) + '\n');
    const bool complete = plan_.halves ? halve() : runner_.run(plan_.trials, "");
    show_result();
    if (!complete) print_text("continue with: tutti sweep " + on_one_line(shell_word(folder_)) + '\n');
    return std::ranges::all_of(plan_.trials, [&](const Trial& trial) { return has_failed(trial); }) ? 1 : 0;
  }

 private:
  bool has_failed(const Trial& trial) const {
    return runner_.status(trial).ending.condition == RunCondition::kFailed;
  }

  // Successive halving: Jamieson and Talwalkar 2016, arXiv:1502.07943. Trials stop at a rung with their
  // schedules as of the whole training, and the better ones train on.
  bool halve() {
    std::vector<Trial> left = plan_.trials;
    std::size_t rung = 0;
    for (const std::string& stop_at : plan_.rungs_ahead()) {
      if (rung++ >= plan_.rungs.size()) {
        if (!runner_.run(left, stop_at)) return false;
        plan_.rungs.push_back({stop_at, kept_of(left)});
        PosixDisk disk;
        plan_.write(disk, folder_);
        print_text("after " + stop_at + ": " + std::to_string(plan_.rungs.back().kept.size()) + " of " +
                   std::to_string(left.size()) + " trials train on\n");
      }
      const auto& kept = plan_.rungs[rung - 1].kept;
      std::erase_if(left, [&](const Trial& trial) { return std::ranges::count(kept, trial.name) == 0; });
    }
    return runner_.run(left, "");
  }

  // One of eta trials, the best by the last evaluation; none of the failed.
  std::vector<std::string> kept_of(const std::vector<Trial>& trials) const {
    std::vector<RunStatus> runs;
    for (const Trial& trial : trials)
      if (RunStatus run = runner_.status(trial); run.ending.condition == RunCondition::kEnded)
        runs.push_back(std::move(run));
    std::vector<std::string> kept;
    if (runs.empty()) return kept;
    const RunTable table = table_by_last(std::move(runs));
    const std::size_t most = std::max<std::size_t>(1, trials.size() / static_cast<std::size_t>(plan_.eta));
    for (const RunStatus& run : table.runs())
      if (kept.size() < most) kept.push_back(std::filesystem::path(run.run_dir).filename().string());
    return kept;
  }

  RunTable table_by_last(std::vector<RunStatus> runs) const try {
    return {std::move(runs), {.sort = plan_.metric, .by_headline = true, .by_last = true}};
  } catch (const UserError& error) {
    throw UserError("--metric " + plan_.metric + ": no trial has a metric or a key of this name; `tutti ls " +
                    shell_word(folder_) + " --json` lists the names");
  }

  // By the headline if no run has the metric.
  static RunTable ranked(const std::vector<RunStatus>& runs, const std::string& metric) try {
    return {runs, {.sort = metric, .by_headline = true}};
  } catch (const UserError& error) {
    print_warning(error.what());
    return {runs, {.by_headline = true}};
  }

  void show_result() const {
    std::vector<RunStatus> runs;
    for (const Trial& trial : plan_.trials)
      if (runner_.has_begun(trial)) runs.push_back(runner_.status(trial));
    const std::size_t waiting = plan_.trials.size() - runs.size();
    const bool is_measured = std::ranges::any_of(runs, [](const auto& run) { return run.metrics.step > 0; });
    const RunTable table = ranked(runs, is_measured ? plan_.metric : "");
    print_text('\n' + table.text(std::time(nullptr), terminal_columns(STDOUT_FILENO)));
    if (waiting > 0) print_text("not begun: " + std::to_string(waiting) + " of the trials\n");
    if (!is_measured) return;
    for (const RunStatus& run : table.runs()) {
      const auto trial = std::ranges::find(plan_.trials, run.run_dir,
                                           [this](const Trial& each) { return runner_.run_dir(each); });
      const bool is_sound =
          run.ending.condition != RunCondition::kFailed && run.ending.condition != RunCondition::kDamaged;
      if (trial == plan_.trials.end() || !is_sound || !is_left(*trial)) continue;
      return print_text("\nthe best: " + on_one_line(command_of(plan_, *trial)) + '\n');
    }
  }

  // False for a trial that halving has stopped: its schedule is not over.
  bool is_left(const Trial& trial) const {
    return plan_.rungs.empty() || std::ranges::count(plan_.rungs.back().kept, trial.name) > 0;
  }

  SweepPlan plan_;
  std::string folder_;
  TrialRunner runner_;
};

// Plans the sweep of the command line. Returns its folder.
std::string plan_new(SweepPlan& plan, const std::string& run_dir) {
  const std::string name = plan.base().at("run_name").text();
  plan.plan_trials();
  plan.recipe.path = plain_path(plan.recipe.path);
  return run_dir.empty() ? "runs/" + name + "-sweep" : run_dir;
}

// A sweep that was killed at its very start leaves no plan, but its lock and parts of the plan.
bool holds_other_files(const Disk& disk, const std::string& folder) {
  return std::ranges::any_of(disk.list(folder), [](const std::string& name) {
    return name != kSweepLock && !name.starts_with("base.toml") && !name.starts_with(kSweepFile);
  });
}

// The plan in the folder, which is written first if the sweep is new.
SweepPlan agreed_plan(Disk& disk, const SweepPlan& asked, const std::string& folder, bool continues) {
  if (!is_sweep_folder(folder)) {
    asked.write(disk, folder);
    return asked;
  }
  SweepPlan plan = SweepPlan::read(folder);
  plan.require_same(continues ? plan : asked, folder);
  if (asked.metric.empty() || asked.metric == plan.metric) return plan;
  plan.metric = asked.metric;
  plan.write(disk, folder);
  return plan;
}

int sweep(SweepArguments arguments) {
  if (launched_rank()) throw UserError("sweep starts mpirun itself, for each trial: give it --ranks N");
  SweepPlan& asked = arguments.plan;
  PosixDisk disk;
  std::string folder = asked.recipe.path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  const bool continues = is_sweep_folder(folder);
  if (continues && !arguments.run_dir.empty())
    throw UserError("--run-dir " + arguments.run_dir + ": " + folder + " is the folder of a sweep already");
  if (continues)
    asked.require_only_folder();
  else
    folder = plan_new(asked, arguments.run_dir);
  if (!is_sweep_folder(folder) && holds_other_files(disk, folder))
    throw UserError(folder + ": there are files in it, and no sweep; give another --run-dir");
  disk.make_folders(folder);
  const std::string lock_path = folder + '/' + kSweepLock;
  const auto lock = disk.lock(lock_path, "host " + host_name());
  if (!lock)
    throw UserError(folder + ": a sweep is under way in it, on " + disk.read_text(lock_path, kMostTextBytes));
  return Sweep(agreed_plan(disk, asked, folder, continues), folder, arguments.jobs).run();
}

void add_space(CLI::App& command, SearchSpace& space) {
  command.add_option("--grid", space.grid, "values of a key; several --grid: all their combinations")
      ->type_name("KEY=A,B,...")
      ->allow_extra_args(false);
  command
      .add_option("--random", space.random,
                  "a key to draw: 0.1..0.5, log:1e-4..1e-1, int:1..8, or one of a,b,c")
      ->type_name("KEY=RANGE")
      ->allow_extra_args(false);
  command.add_option("-n", space.draws, "draws of the --random keys, for each combination of the grid")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  command.add_option("--seed", space.seed, "of the draws (default: 0)")
      ->type_name("N")
      ->check(CLI::Range(0.0, 9e18));
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "sweep", "Train a recipe with many settings, and show the best; the same command continues a sweep");
  auto arguments = std::make_shared<SweepArguments>();
  SweepPlan& plan = arguments->plan;
  add_recipe_options(*command, plan.recipe);
  command->get_option("RECIPE")->description("the recipe, a TOML file; or the folder of a sweep to continue");
  add_space(*command, plan.space);
  command->add_option("--jobs", arguments->jobs, "trials at once (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--ranks", plan.ranks, "ranks of a trial, by mpirun (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, SweepPlan::kMostRanks));
  command->add_flag("--halving", plan.halves,
                    "stop hopeless trials: only the better half trains on after a part of the training");
  command->add_option("--metric", plan.metric, "by which trials are ranked (default: as of tutti ls)")
      ->type_name("METRIC");
  command->add_option("--eta", plan.eta, "with --halving: one of N trials trains on (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(2, SweepPlan::kMostEta));
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "the sweep's folder (default: runs/, the recipe's run_name and -sweep)")
      ->type_name("DIR");
  command->callback([&action, arguments] { action = [=] { return sweep(*arguments); }; });
}

}  // namespace tutti
