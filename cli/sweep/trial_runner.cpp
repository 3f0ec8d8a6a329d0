#include "cli/sweep/trial_runner.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/mpirun.h"
#include "io/run_paths.h"
#include "recipe/time/time.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/shell.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(200);

// At once, also into a pipe: a sweep may be killed.
void say(const std::string& text) {
  print_text(text);
  std::fflush(stdout);
}

// `tutti train RECIPE --set ...` after the program's name.
std::vector<std::string> words_of(const SweepPlan& plan, const Trial& trial) {
  std::vector<std::string> words = {"train", plan.recipe.path};
  for (const auto* overrides : {&plan.recipe.overrides, &trial.set})
    for (const std::string& text : *overrides) words.insert(words.end(), {"--set", text});
  return words;
}

std::vector<std::string> launcher_words(int ranks) {
  return ranks == 1 ? std::vector<std::string>() : mpirun_command({"-np", std::to_string(ranks)}, {});
}

bool same_time(const std::string& first, const std::string& other) {
  if (first == other) return true;
  if (first.empty() || other.empty()) return false;
  const Time a = Time::parse(first), b = Time::parse(other);
  return a.unit() == b.unit() && a == b;
}

// The last error that a program printed.
std::string last_error(const std::string& log) try {
  const std::string text = text_of_file(log, kMostTextBytes);
  const std::size_t at = text.rfind("\nerror: ");
  const std::size_t begin = at == text.npos ? (text.starts_with("error: ") ? 0 : text.npos) : at + 1;
  if (begin == text.npos) return "";
  return text.substr(begin + 7, text.find('\n', begin) - begin - 7);
} catch (const RunError&) {
  return "";
}

}  // namespace

std::string command_of(const SweepPlan& plan, const Trial& trial) {
  std::string command = plan.ranks > 1 ? "tutti run -np " + std::to_string(plan.ranks) : "tutti";
  std::vector<std::string> words = words_of(plan, trial);
  const fs::path near = fs::path(words[1]).lexically_relative(fs::current_path());
  if (!near.empty() && *near.begin() != "..") words[1] = near.string();
  for (const std::string& word : words) command += ' ' + shell_word(word);
  return command;
}

TrialRunner::TrialRunner(const SweepPlan& plan, std::string folder, int jobs)
    : plan_(plan), folder_(std::move(folder)), jobs_(jobs) {
  PosixDisk().make_folders(folder_ + "/log");
}

RunStatus TrialRunner::status(const Trial& trial) const {
  RunStatus status{.run_dir = run_dir(trial)};
  const auto failure = failures_.find(trial.name);
  try {
    if (is_run_folder(status.run_dir)) status = status_of(status.run_dir);
  } catch (const UserError& error) {
    status.ending = {RunCondition::kDamaged, error.headline()};
    return status;
  }
  if (status.recipe.is_table() && !status.recipe.has("train")) {
    status.ending = {RunCondition::kDamaged, "its recipe.toml is empty"};
    return status;
  }
  if (status.recipe.is_none()) status.recipe = plan_.resolved(trial);
  const bool is_finite = status.metrics.step == 0 || std::isfinite(status.metrics.figure("loss"));
  if (status.ending.condition == RunCondition::kEnded && !is_finite) {
    status.ending.condition = RunCondition::kFailed;
    status.ending.reason = "its loss is not finite in the end";
  }
  if (failure != failures_.end() && status.ending.condition != RunCondition::kFailed)
    status.ending = {RunCondition::kFailed, failure->second, "{}", "error"};
  return status;
}

// A trial that could not begin is tried again by the next sweep alone.
bool TrialRunner::is_done(const Trial& trial, const std::string& stop_at) const {
  if (failures_.contains(trial.name)) return true;
  if (!PosixDisk().exists(run_dir(trial))) return false;
  const RunStatus now = status(trial);
  const std::string& ended = now.ending.ended;
  if (ended == "stop_at") {
    const std::string asked = stop_at.empty() ? text_at(plan_.resolved(trial), "train", "stop_at") : stop_at;
    return same_time(text_at(now.recipe, "train", "stop_at"), asked);
  }
  return !ended.empty() && ended != "request";
}

// By an earlier sweep that was killed: its trial finishes its step.
bool TrialRunner::is_under_way_elsewhere(const Trial& trial) {
  if (PosixDisk().lock_state(run_dir(trial) + '/' + kRunLock) != LockState::kHeld) return false;
  if (awaited_.insert(trial.name).second)
    say(trial.name + ": an earlier process still trains it; waits for its end\n");
  return true;
}

void TrialRunner::start(std::size_t index, const Trial& trial, const std::string& stop_at) {
  PosixDisk disk;
  const bool continues = disk.exists(run_dir(trial));
  if (continues) disk.remove_all(run_dir(trial) + '/' + kResultFile);  // the result of an earlier rung
  std::vector<std::string> words = launcher_words(plan_.ranks);
  words.push_back(own_program());
  for (const std::string& word : words_of(plan_, trial)) words.push_back(word);
  if (!stop_at.empty()) words.insert(words.end(), {"--set", "train.stop_at=" + stop_at});
  words.insert(words.end(), {"--run-dir", run_dir(trial)});
  if (continues) words.insert(words.end(), {"--resume", "auto"});
  say(trial.name + (continues ? ": continues\n" : ": starts\n"));
  pool_.start(static_cast<int>(index), words, log_path(trial));
  under_way_.push_back(trial);
}

void TrialRunner::finish(const Trial& trial, int exit_status, const std::string& stop_at) {
  std::erase(under_way_, trial);
  if (exit_status != 0 && !pool_.stop_asked() && !is_done(trial, stop_at)) {
    const std::string error = last_error(log_path(trial));
    failures_[trial.name] =
        error.empty() ? outcome_text(exit_status) + "; its output is in " + log_path(trial) : error;
  }
  const RunStatus now = status(trial);
  const bool waits = now.ending.ended == "stop_at" && !stop_at.empty();
  say(trial.name + ": " + name(now.ending.condition) + ", " +
      on_one_line(waits ? "at " + stop_at : now.ending.reason) + '\n');
}

// mpirun would kill ranks that are not done within a second.
void TrialRunner::stop_all() {
  if (plan_.ranks == 1) return pool_.signal_all(SIGTERM);
  PosixDisk disk;
  for (const Trial& trial : under_way_)
    if (disk.lock_state(run_dir(trial) + '/' + kRunLock) == LockState::kHeld)
      disk.open(run_dir(trial) + '/' + kStopFile, true)->close();
}

bool TrialRunner::run(const std::vector<Trial>& trials, const std::string& stop_at) {
  std::size_t next = 0;
  bool stopping = false;
  for (;;) {
    while (!stopping && next < trials.size() && std::ssize(under_way_) < jobs_ &&
           !is_under_way_elsewhere(trials[next])) {
      if (!is_done(trials[next], stop_at)) start(next, trials[next], stop_at);
      ++next;
    }
    if (under_way_.empty() && (stopping || next == trials.size())) return !stopping;
    if (const auto ended = pool_.wait(kLookInterval))
      finish(trials[static_cast<std::size_t>(ended->id)], ended->status, stop_at);
    if (!pool_.stop_asked()) continue;
    if (!stopping && !under_way_.empty()) say("stops: the trials under way write checkpoints\n");
    if (!stopping || plan_.ranks > 1) stop_all();  // a run that begins removes an earlier request
    stopping = true;
  }
}

}  // namespace tutti
