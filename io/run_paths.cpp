#include "io/run_paths.h"

#include <filesystem>

#include "recipe/placeholders.h"
#include "runtime/error.h"

namespace tutti {

namespace fs = std::filesystem;

// If a path cannot be resolved, opening it reports why.
std::string path_in_run(const std::string& run_dir, const std::string& name) {
  const std::string path = run_dir + '/' + name;
  std::error_code unknown;
  const fs::path whole = fs::canonical(run_dir, unknown);
  if (unknown) return path;
  const fs::path target = fs::weakly_canonical(whole / name, unknown);
  if (!unknown && !target.string().starts_with((whole / "").string()))
    throw UserError({path},
                    "is a link out of the run's folder, to " + target.string() + ", and is not followed");
  return path;
}

std::string require_no_link_out(const std::string& run_dir, const std::string& path) {
  return path.starts_with(run_dir + '/') ? path_in_run(run_dir, path.substr(run_dir.size() + 1)) : path;
}

std::string logger_path(const std::string& run_dir, const std::string& run_name, int rank,
                        std::string pattern) {
  replace_all(pattern, "{run_name}", run_name);
  replace_all(pattern, "{rank}", std::to_string(rank));
  return pattern.starts_with('/') ? pattern : run_dir + "/" + pattern;
}

}  // namespace tutti
