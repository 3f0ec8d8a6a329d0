// The subcommands `run` and `demo`.
#include "cli/run_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "cli/commands.h"
#include "cli/mpirun.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/process/shell.h"
#include "runtime/process/supervised.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

using CommandWords = std::vector<std::string>;

std::vector<std::string> names_of_commands(const CLI::App& app) {
  CommandWords names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

struct Launch {
  CommandWords options;  // for mpirun
  CommandWords program;
  bool is_own = false;  // a command of tutti, not another program
};

// How many values an option of mpirun takes: a host, too, may be called like a command.
std::ptrdiff_t number_of_values(const std::string& option) {
  constexpr std::string_view kOne =
      " np n c H x host hosts hostfile machinefile default-hostfile app map-by rank-by bind-to cpu-list "
      "slot-list "
      "rankfile wdir wd path prefix output output-filename report-uri preload-files stdin timeout tune "
      "personality with-ft ";
  constexpr std::string_view kTwo = " mca gmca prtemca pmixmca ";
  const std::size_t begin = option.find_first_not_of('-');
  if (begin != 1 && begin != 2) return 0;
  const std::string name = ' ' + option.substr(begin) + ' ';
  return kOne.find(name) != kOne.npos ? 1 : kTwo.find(name) != kTwo.npos ? 2 : 0;
}

// `--option=value` in two words, as every mpirun understands them, and --hosts as --host.
CommandWords options_for_mpirun(const CommandWords& words) {
  CommandWords options;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const bool in_one = equals != word.npos && number_of_values(name) > 0;
    if (!in_one) name = word;
    options.push_back(name == "--hosts" ? "--host" : name);
    if (in_one) options.push_back(word.substr(equals + 1));
  }
  return options;
}

// Behind an option and its values, of which the first may stand in the option's word.
CommandWords::const_iterator behind(CommandWords::const_iterator option, CommandWords::const_iterator end) {
  const std::size_t equals = option->find('=');
  const std::ptrdiff_t values = number_of_values(option->substr(0, equals));
  const bool in_one = equals != option->npos && values > 0;
  return option + std::min(1 + values - (in_one ? 1 : 0), end - option);
}

// The error for words without a command.
UserError lack_of_command(const CommandWords& words, const CommandWords& names) {
  for (auto word = words.begin(); word != words.end(); word = behind(word, words.end())) {
    const std::string near = nearest_name(*word, names);
    if (word->starts_with('-') || near.empty() || !similar_name(near, *word)) continue;
    return UserError("run: there is no command " + *word + "; did you mean " + near + "?");
  }
  return UserError(
      "run: expected a command after mpirun's options, as in `tutti run -np 2 train recipe.toml`, "
      "or -- and a program");
}

Launch launch_of(const CLI::App& app, const CommandWords& words) {
  const CommandWords names = names_of_commands(app);
  auto at = words.begin();
  while (at != words.end() && *at != "--" && std::ranges::count(names, *at) == 0)
    at = behind(at, words.end());
  if (at == words.end() || (*at == "--" && at + 1 == words.end())) throw lack_of_command(words, names);
  Launch launch{options_for_mpirun({words.begin(), at}), {}, *at != "--"};
  if (launch.is_own)
    launch.program.push_back(own_program());
  else
    ++at;
  launch.program.insert(launch.program.end(), at, words.end());
  return launch;
}

// mpirun kills ranks soon after it is asked to stop, ready or not; but it forwards SIGUSR1.
int run_own(const Launch& launch) {
  setenv(kGentleStop, "1", /*replace=*/1);
  return run_supervised(mpirun_command(launch.options, launch.program));
}

[[noreturn]] void become(const CommandWords& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  throw OperatingError("cannot start " + command[0] + ": " + std::strerror(errno));
}

// Installed, or in the source tree beside the build.
fs::path example(const std::string& name) {
  const fs::path folder = fs::path(own_program()).parent_path().parent_path();
  for (const char* examples : {"share/tutti/examples", "examples"})
    if (const fs::path path = folder / examples / name; fs::exists(path)) return path;
  throw UserError("demo: the examples are not installed beside " + own_program());
}

int demo(int ranks, const std::string& run_dir) {
  if (launched_rank()) throw UserError("demo starts mpirun itself: give it --ranks N");
  const Launch launch{{"-np", std::to_string(ranks)},
                      {own_program(), "train", example("digits.toml").string(), "--run-dir", run_dir},
                      true};
  std::string shown = "tutti run -np " + std::to_string(ranks);
  for (auto word = launch.program.begin() + 1; word != launch.program.end(); ++word)
    shown += ' ' + shell_word(*word);
  print_text(shown + '\n');
  std::fflush(stdout);
  return run_own(launch);
}

}  // namespace

int run_ranks(CLI::App& app, const CommandWords& words) {
  if (launched_rank()) throw UserError("run starts mpirun itself: leave out the outer mpirun or srun");
  const Launch launch = launch_of(app, words);
  if (launch.is_own) return run_own(launch);
  become(mpirun_command(launch.options, launch.program));
}

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run",
                                     "Start a command on several ranks, by mpirun with what ranks need. "
                                     "Options before COMMAND are mpirun's");
  command->prefix_command();
  command->set_help_flag("--help", "Print this help message and exit");
  command->callback([&app, &action, command] {
    action = [&app, command] { return run_ranks(app, command->remaining()); };
  });
}

void add_demo(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("demo", "Train the example of handwritten digits: seconds on two ranks");
  auto ranks = std::make_shared<int>(2);
  auto run_dir = std::make_shared<std::string>("runs/digits");
  command->add_option("--ranks", *ranks, "ranks, by mpirun (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--run-dir", *run_dir, "the run's folder (default: runs/digits)")->type_name("DIR");
  command->callback([&action, ranks, run_dir] { action = [=] { return demo(*ranks, *run_dir); }; });
}

}  // namespace tutti
