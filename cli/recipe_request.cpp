#include "cli/recipe_request.h"

#include <dlfcn.h>

#include <filesystem>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/process/memory_limits.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

fs::path library_path() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path beside = folder / "libtutti.so";
  const fs::path installed = folder / ".." / "lib" / "libtutti.so";
  return fs::exists(beside) || !fs::exists(installed) ? beside : installed;
}

// RTLD_GLOBAL: components of Open MPI and plugins use symbols of the library.
void* open_library() {
  void* library = dlopen(library_path().c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!library) {
    const std::string why = dlerror();
    const MemoryLimits limits;
    throw OperatingError(
        "cannot open libtutti.so: " + why +
        (limits.any() && fs::exists(library_path()) ? "; the system has a " + limits.text() : ""));
  }
  return library;
}

}  // namespace

void add_recipe_options(CLI::App& command, LibraryArguments& arguments) {
  command.add_option("RECIPE", arguments.path, "the recipe, a TOML file")->required();
  command
      .add_option("--set", arguments.overrides, "set a key of the recipe; VALUE is TOML, else a bare text")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_attempt_option(CLI::App& command, int64_t& attempt, const std::string& suffix) {
  const auto add = [&](const std::string& name) {
    return command
        .add_option(name + suffix, attempt, "number of the recorded attempt, from 1 (default: the newest)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
  };
  add("--attempt");
  add("--start")->group("");
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
                             .json = arguments.json,
                             .ranks = arguments.ranks,
                             .scan_data = arguments.scan_data,
                             .all = arguments.all,
                             .steps = arguments.steps,
                             .digest = arguments.digest,
                             .until = arguments.until,
                             .break_at = arguments.break_at,
                             .rank = arguments.rank,
                             .start = arguments.attempt,
                             .seeds = arguments.seeds.c_str(),
                             .faults = arguments.faults.c_str(),
                             .jobs = arguments.jobs,
                             .once = arguments.once,
                             .share_of = arguments.share_of,
                             .evaluator = arguments.evaluator.c_str(),
                             .out = arguments.out.c_str()};
  auto* run = reinterpret_cast<decltype(&tutti_run)>(dlsym(open_library(), "tutti_run"));
  if (!run) throw OperatingError(std::string("libtutti.so is of another build: ") + dlerror());
  return run(&request);
}

int run_recipe_request(const std::string& command, const LibraryArguments& arguments) {
  if (!launched_rank()) resolve_recipe(read_recipe(arguments.path, arguments.overrides));
  return run_request(command, arguments);
}

}  // namespace tutti
