// Subcommands that show runs.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "analysis/run_status.h"
#include "cli/commands.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

struct ShownRuns {
  std::string folder = "runs";
  bool json = false;
};

void print_json(const RunStatus& status) { std::printf("%s\n", status.json().c_str()); }

int show_status(const ShownRuns& shown) {
  const RunStatus status = status_of(shown.folder);
  if (shown.json)
    print_json(status);
  else
    print_text(status_text(status, std::time(nullptr)));
  return 0;
}

int show_runs(const ShownRuns& shown) {
  const std::vector<RunStatus> runs = runs_below(shown.folder);
  if (shown.json)
    std::ranges::for_each(runs, print_json);
  else
    print_text(table_of_runs(runs, std::time(nullptr)));
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("status", "Show how far a run is, its metrics and its checkpoints");
  auto shown = std::make_shared<ShownRuns>();
  command->add_option("RUN", shown->folder, "the run's folder")->required();
  command->add_flag("--json", shown->json, "as a JSON object");
  command->callback([&action, shown] { action = [=] { return show_status(*shown); }; });
}

void add_ls(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("ls", "List the runs in a folder");
  auto shown = std::make_shared<ShownRuns>();
  command->add_option("FOLDER", shown->folder, "the folder of run folders (default: runs)");
  command->add_flag("--json", shown->json, "a JSON object a line, as of tutti status --json");
  command->callback([&action, shown] { action = [=] { return show_runs(*shown); }; });
}

}  // namespace tutti
