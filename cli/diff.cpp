#include <cstdio>
#include <memory>

#include "analysis/run_diff.h"
#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {
namespace {

struct DiffArguments {
  std::string run_a, run_b;
  int64_t start_a = 0, start_b = 0;
};

int diff(const DiffArguments& asked) {
  const RunDiff result = diff_runs(asked.run_a, asked.run_b, asked.start_a, asked.start_b);
  std::printf("%s\n", result.text.c_str());
  return result.same ? 0 : 1;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("diff", "Name the first step, rank and tensor where two recorded runs differ");
  auto arguments = std::make_shared<DiffArguments>();
  command->add_option("RUN_A", arguments->run_a, "a run's folder")->required();
  command->add_option("RUN_B", arguments->run_b, "another's, or the same one's")->required();
  add_start_option(*command, "--start-a", arguments->start_a);
  add_start_option(*command, "--start-b", arguments->start_b);
  command->callback([&action, arguments] { action = [=] { return diff(*arguments); }; });
}

}  // namespace tutti
