#include "cli/recipe_request.h"

#include "cli/library.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/process/this_process.h"

namespace tutti {

void add_recipe_options(CLI::App& command, LibraryArguments& arguments) {
  command.add_option("RECIPE", arguments.path, "the recipe, a TOML file")->required();
  command
      .add_option("--set", arguments.overrides, "set a key of the recipe; VALUE is TOML, else a bare text")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_start_option(CLI::App& command, const std::string& name, int64_t& start) {
  command.add_option(name, start, "which of the starts that are recorded, from 1 (default: the newest)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
}

int run_request(const std::string& command, const LibraryArguments& arguments) {
  std::vector<const char*> overrides;
  for (const auto& text : arguments.overrides) overrides.push_back(text.c_str());
  const TuttiRequest request{.command = command.c_str(),
                             .path = arguments.path.c_str(),
                             .overrides = overrides.data(),
                             .override_count = static_cast<int>(overrides.size()),
                             .run_dir = arguments.run_dir.c_str(),
                             .resume = arguments.resume.c_str(),
                             .checkpoint = arguments.checkpoint.c_str(),
                             .local_ranks = arguments.local_ranks,
                             .ranks = arguments.ranks,
                             .scan_data = arguments.scan_data,
                             .digest = arguments.digest,
                             .until = arguments.until,
                             .break_at = arguments.break_at,
                             .rank = arguments.rank,
                             .start = arguments.start,
                             .seeds = arguments.seeds.c_str(),
                             .faults = arguments.faults.c_str(),
                             .jobs = arguments.jobs,
                             .once = arguments.once,
                             .share_of = arguments.share_of,
                             .evaluator = arguments.evaluator.c_str(),
                             .out = arguments.out.c_str()};
  return run_in_library(request);
}

int run_recipe_request(const std::string& command, const LibraryArguments& arguments) {
  if (!launched_rank()) resolve_recipe(read_recipe(arguments.path, arguments.overrides));
  return run_request(command, arguments);
}

}  // namespace tutti
