#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {
namespace {

// "step=12", as metrics.jsonl counts; what is left of it is the number.
std::string step_number(std::string& text) {
  if (text.starts_with("step=")) text = text.substr(5);
  const bool number = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == text.npos;
  return number && text != "0" ? "" : "expected step=N, N from 1";
}

CLI::Validator step() { return {step_number, "step=N"}; }

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("replay", "Run a recorded run again in one process and compare it");
  auto arguments = std::make_shared<LibraryArguments>();
  command->add_option("RUN", arguments->path, "the run's folder")->required();
  add_start_option(*command, "--start", arguments->start);
  command->add_option("--until", arguments->until, "the last step to replay")->transform(step());
  command
      ->add_option("--break-at", arguments->break_at,
                   "write the state of every rank before this step to HDF5 files, and end")
      ->transform(step());
  command->add_option("--rank", arguments->rank, "compare this rank only")->type_name("R");
  command->callback([&action, arguments] { action = [=] { return run_request("replay", *arguments); }; });
}

}  // namespace tutti
