#include "cli/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

void add_help(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("help", "Show the help of a command");
  auto name = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "a command (default: all, in a line each)");
  command->callback([&app, &action, name] {
    action = [&app, name] {
      const auto& formatter = *app.get_formatter();  // App::help would be that of `help` itself
      const std::string text = name->empty()
                                   ? formatter.make_help(&app, app.get_name(), CLI::AppFormatMode::Normal)
                                   : command_named(app, *name).help(app.get_name());
      std::fputs(text.c_str(), stdout);
      return 0;
    };
  });
}

// What other programs call a command.
std::string other_name(const std::string& name) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"tail", "logs"},       {"log", "logs"},       {"follow", "logs"},       {"fit", "train"},
      {"continue", "resume"}, {"restart", "resume"}, {"evaluate", "eval"},     {"test", "eval"},
      {"validate", "eval"},   {"infer", "predict"},  {"inference", "predict"}, {"sample", "generate"},
      {"kill", "stop"},       {"runs", "ls"},        {"list-runs", "ls"},      {"tune", "sweep"},
      {"search", "sweep"},    {"finetune", "train"}, {"tensorboard", "report"}};
  for (const auto& [theirs, ours] : kNames)
    if (name == theirs) return ours;
  return "";
}

}  // namespace

CLI::App& command_named(CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return *command;
    names.push_back(command->get_name());
  }
  const std::string other = other_name(name), near = other.empty() ? nearest_name(name, names) : other;
  throw UserError("there is no command " + name + (near.empty() ? "" : "; did you mean " + near + "?"));
}

void add_commands(CLI::App& app, Action& action) {
  app.set_version_flag("-V,--version", version_text,
                       "Print the versions of tutti and of what it runs on, and exit");
  app.require_subcommand(0, 1);
  for (const auto add :
       {add_init,    add_convert,    add_train,    add_resume,     add_eval,     add_predict,
        add_check,   add_inspect,    add_export,   add_import,     add_generate, add_tokenize,
        add_replay,  add_diff,       add_timeline, add_report,     add_simulate, add_sweep,
        add_lr_find, add_batch_find, add_status,   add_logs,       add_ls,       add_compare,
        add_stop,    add_list,       add_explain,  add_completion, add_man,      add_help}) {
    add(app, action);
  }
  add_examples(app);
}

}  // namespace tutti
