// `tutti logs`.
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "analysis/run_folder.h"
#include "analysis/run_messages.h"
#include "cli/commands.h"
#include "cli/run_arguments.h"
#include "io/run_paths.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(200);

struct LogsArguments {
  std::string run;
  bool follow = false;
  std::optional<std::size_t> lines;  // the last N
  int rank = 0;
};

void print_line(const std::string& line) { print_text(on_one_line(line) + '\n'); }

bool is_under_way(const std::string& run_dir) {
  return PosixDisk().lock_state(run_dir + '/' + kRunLock) == LockState::kHeld;
}

// What is there now.
void print_all(RunMessages& log, const LogsArguments& arguments, bool is_over) {
  if (!arguments.lines) {
    log.print_new(is_over, print_line);
    return;
  }
  std::deque<std::string> last;
  log.print_new(is_over, [&](const std::string& line) {
    last.push_back(line);
    if (last.size() > *arguments.lines) last.pop_front();
  });
  for (const std::string& line : last) print_line(line);
}

// Until the run has ended and nothing new comes.
void follow(RunMessages& log, const std::string& run_dir) {
  for (bool goes_on = true; goes_on;) {
    std::fflush(stdout);
    std::this_thread::sleep_for(kPollInterval);
    const bool runs = is_under_way(run_dir);
    goes_on = log.print_new(!runs, print_line) || runs;
  }
}

int show_logs(const LogsArguments& arguments) try {
  const std::string run_dir = run_folder(arguments.run);
  require_run_folder(run_dir);
  RunMessages log(run_dir, arguments.rank);
  const bool follows = arguments.follow && is_under_way(run_dir);
  print_all(log, arguments, /*is_over=*/!follows);
  if (follows) follow(log, run_dir);
  const RunEnding ending = ending_of(PosixDisk(), run_dir);
  print_line(run_dir + ": " + name(ending.condition) + ", " + ending.reason);
  return 0;
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace

void add_logs(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("logs", "Print what a run has logged: messages, progress, evaluations");
  auto arguments = std::make_shared<LogsArguments>();
  add_run_argument(*command, arguments->run);
  command->add_flag("-f,--follow", arguments->follow, "continue until the run ends");
  command->add_option("-n,--lines", arguments->lines, "only the last N lines, before those that follow")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000));
  command->add_option("--rank", arguments->rank, "the messages of this rank (default: 0, with progress)")
      ->type_name("R")
      ->check(CLI::Range(0, 1'000'000));
  command->callback([&action, arguments] { action = [=] { return show_logs(*arguments); }; });
}

}  // namespace tutti
