#include "analysis/report/report_page.h"
#include "cli/commands.h"
#include "runtime/disk.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

int report(const ReportArguments& arguments) {
  PosixDisk disk;
  const std::string out = arguments.out.empty() ? arguments.runs[0] + "/report.html" : arguments.out;
  print_text(write_report(disk, arguments.runs, out) + '\n');
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "report", "Write a page about runs, finished or not: curves, time by activity, faults");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("RUN", arguments->runs, "the runs' folders, to be shown side by side")->required();
  command->add_option("--out", arguments->out, "the HTML file (default: report.html in the first folder)")
      ->type_name("FILE");
  command->callback([&action, arguments] { action = [=] { return report(*arguments); }; });
}

}  // namespace tutti
