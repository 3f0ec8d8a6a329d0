#include "analysis/timeline.h"

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {
namespace {

struct TimelineArguments {
  std::string run_dir, out;
  int64_t start = 0;
};

int timeline(const TimelineArguments& arguments) {
  PosixDisk disk;
  const std::string out = arguments.out.empty() ? arguments.run_dir + "/timeline.json" : arguments.out;
  const std::string told = write_timeline(disk, arguments.run_dir, out, arguments.start);
  std::printf("%s\n", told.c_str());
  return 0;
}

}  // namespace

void add_timeline(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("timeline", "Write a recorded run, also one under way, as a trace for Perfetto");
  auto arguments = std::make_shared<TimelineArguments>();
  command->add_option("RUN", arguments->run_dir, "the run's folder")->required();
  command->add_option("--out", arguments->out, "where to; else RUN/timeline.json")->type_name("FILE");
  add_start_option(*command, "--start", arguments->start);
  command->callback([&action, arguments] { action = [=] { return timeline(*arguments); }; });
}

}  // namespace tutti
