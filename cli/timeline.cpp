#include "io/timeline.h"

#include <cstdio>
#include <memory>

#include "cli/commands.h"

namespace tutti {
namespace {

int timeline(const std::string& run_dir, const std::string& out) {
  PosixDisk disk;
  const std::string told = write_timeline(disk, run_dir, out.empty() ? run_dir + "/timeline.json" : out);
  std::printf("%s\n", told.c_str());
  return 0;
}

}  // namespace

void add_timeline(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("timeline", "Write a recorded run, also one under way, as a trace for Perfetto");
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("RUN", paths->first, "the run's folder; its newest start is drawn")->required();
  command->add_option("--out", paths->second, "where to; else RUN/timeline.json")->type_name("FILE");
  command->callback([&action, paths] { action = [=] { return timeline(paths->first, paths->second); }; });
}

}  // namespace tutti
