#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "io/run_diff.h"

namespace tutti {
namespace {

int diff(const std::string& run_a, const std::string& run_b) {
  const RunDiff result = diff_runs(run_a, run_b);
  std::printf("%s\n", result.text.c_str());
  return result.same ? 0 : 1;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("diff", "Name the first step, rank and tensor where two recorded runs differ");
  auto runs = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("RUN_A", runs->first, "a run's folder; its newest start is compared")->required();
  command->add_option("RUN_B", runs->second, "another's")->required();
  command->callback([&action, runs] { action = [=] { return diff(runs->first, runs->second); }; });
}

}  // namespace tutti
