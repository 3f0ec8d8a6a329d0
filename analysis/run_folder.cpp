#include "analysis/run_folder.h"

#include "io/run_paths.h"
#include "runtime/error.h"

namespace tutti {

void require_run_folder(const Disk& disk, const std::string& run_dir) {
  if (!disk.exists(run_dir)) throw UserError(run_dir + ": there is no such folder");
  if (!disk.exists(run_dir + '/' + kRecipeFile))
    throw UserError(run_dir + ": not a run folder: it has no " + kRecipeFile);
}

std::string text_at(const Setting& recipe, const char* section, const char* key) {
  const Setting* table = recipe.find(section);
  const Setting* value = table && table->is_table() ? table->find(key) : nullptr;
  return value && value->is_text() ? value->text() : "";
}

std::string checkpoints_folder(const std::string& run_dir, const Setting& recipe) {
  const std::string folder = text_at(recipe, "checkpoint", "save_folder");
  return folder.empty() ? run_dir + "/checkpoints" : folder;
}

bool is_under_way(Disk& disk, const std::string& run_dir) try {
  const std::string path = run_dir + '/' + kRunLock;
  return disk.exists(path) && !disk.lock(path, "");
} catch (const OperatingError&) {
  return false;
}

}  // namespace tutti
