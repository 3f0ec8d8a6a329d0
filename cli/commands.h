#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace tutti {

// The action of the command line; returns the exit code.
using Action = std::function<int()>;

// Each adds a subcommand, which sets `action` when parsed.
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_timeline(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_ls(CLI::App& app, Action& action);
void add_stop(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);

}  // namespace tutti
