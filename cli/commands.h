#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tutti {

// The action of the command line; returns the exit code.
using Action = std::function<int()>;

// Each adds a subcommand, which sets `action` when parsed. Its examples stand in help/examples.cpp, and
// help/described.cpp has the shell's offers for its placeholders.
void add_init(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_resume(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_timeline(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_logs(CLI::App& app, Action& action);
void add_lr_find(CLI::App& app, Action& action);
void add_batch_find(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_ls(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_stop(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);

// Gives every subcommand the examples that end its --help.
void add_examples(CLI::App& app);

// Candidates for the last of `words`, which follow `tutti` on a command line. The first line names the kind
// of files that the shell adds: files, folders, recipes, or none ("words"). Each other line is a candidate, a
// tab and its description; a candidate ends with "=" if a value follows. For --option=value, candidates for
// the value.
std::string completions(const CLI::App& app, const std::vector<std::string>& words);

// The output of --version: "tutti X.Y.Z", then a line each for the commit, the libraries and the processor.
std::string version_text();

}  // namespace tutti
