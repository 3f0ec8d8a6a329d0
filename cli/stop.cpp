#include <cstdio>

#include "cli/commands.h"
#include "job/run_paths.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {
namespace {

int stop_run(const std::string& run_dir) {
  PosixDisk disk;
  if (!disk.exists(run_dir + "/recipe.toml")) {
    throw UserError(run_dir + ": this is no run folder; there is no recipe.toml in it");
  }
  const auto lock = disk.lock(run_dir + '/' + kRunLock, "");
  if (lock && lock->excludes()) throw UserError(run_dir + ": no run is under way in it");
  disk.open(run_dir + '/' + kStopFile, true)->close();
  std::printf("The run in %s finishes its step, writes a checkpoint and ends.\n", run_dir.c_str());
  return 0;
}

}  // namespace

void add_stop(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("stop", "Ask a run to write a checkpoint and end");
  auto run_dir = std::make_shared<std::string>();
  command->add_option("RUN_DIR", *run_dir, "the run's folder")->required();
  command->callback([&action, run_dir] { action = [=] { return stop_run(*run_dir); }; });
}

}  // namespace tutti
