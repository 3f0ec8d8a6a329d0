#include "commands/entry.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "commands/check.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "sim/replay/replay.h"
#include "sim/simulate/simulate.h"

namespace tutti {
namespace {

Setting resolved_recipe(const TuttiRequest& request) {
  const std::vector<std::string> overrides(request.overrides, request.overrides + request.override_count);
  return resolve_recipe(read_recipe(request.path, overrides));
}

int run_train(const TuttiRequest& request) {
  const auto recipe = [&request] {
    if (request.local_ranks > 0 && launched_rank())
      throw UserError("--local-ranks " + std::to_string(request.local_ranks) +
                      ": under mpirun the ranks are mpirun's; leave one of the two out");
    return resolved_recipe(request);
  };
  if (request.local_ranks == 0 || launched_rank())
    return Launcher().train(
        recipe, {.run_dir = request.run_dir, .resume = request.resume, .json = request.json != 0});
  LocalRunOptions options;
  options.live = true;
  options.json = request.json != 0;
  options.ranks = request.local_ranks;
  options.fresh_seed = std::random_device()();
  options.run_dir = request.run_dir;
  options.resume = request.resume;
  return train_in_one_process(recipe(), options).exit_code;
}

int run_replay(const TuttiRequest& request) {
  ReplayOptions options;
  options.run_dir = request.path;
  if (request.until > 0) options.until = request.until;
  if (request.break_at > 0) options.break_at = request.break_at;
  options.rank = request.rank;
  options.start = request.start;
  const ReplayResult result = replay(options);
  print_text(result.text + '\n');
  return result.same ? 0 : 1;
}

int run_simulate(const TuttiRequest& request) {
  SimulateOptions options;
  options.recipe_path = request.path;
  options.overrides.assign(request.overrides, request.overrides + request.override_count);
  options.ranks = request.ranks;
  const std::string seeds = request.seeds;
  options.first = std::stoull(seeds);
  options.last = std::stoull(seeds.substr(seeds.find("..") + 2));
  options.faults = request.faults;
  options.jobs = request.jobs;
  options.twice = !request.once;
  options.run_dir = request.run_dir ? request.run_dir : "";
  if (request.share_of > 0)
    options.share = SeedShare{options.first, options.last, static_cast<uint64_t>(request.share_of)};
  return simulate(resolved_recipe(request), options);
}

int ranks_to_check(const TuttiRequest& request) {
  return request.ranks > 0 ? request.ranks : std::max(1, launched_world());
}

int print(const std::string& text) {
  print_text(text);
  return 0;
}

}  // namespace
}  // namespace tutti

int tutti_run(const TuttiRequest* request) {
  using namespace tutti;
  const std::string command = request->command;
  if (command == "train") return run_train(*request);
  if (command == "check" && launched_rank().value_or(0) > 0) return 0;  // the first checks for all
  if (command == "check")
    return print(check_text(resolved_recipe(*request), {.ranks = ranks_to_check(*request),
                                                        .scan_data = request->scan_data != 0,
                                                        .all = request->all != 0,
                                                        .steps = request->steps}));
  if (command == "eval") return print(eval_text(resolved_recipe(*request), request->checkpoint));
  if (command == "predict")
    return print(
        predict_text(resolved_recipe(*request), {request->checkpoint, request->evaluator, request->out}));
  if (command == "inspect")
    return print(request->digest ? inspect_digest(request->path) + "\n" : inspect_text(request->path));
  if (command == "replay") return run_replay(*request);
  if (command == "simulate") return run_simulate(*request);
  if (command == "refuse")
    return Launcher().train([request]() -> Setting { throw UserError(request->path); }, {});
  throw UserError("libtutti.so has no command " + command);
}
