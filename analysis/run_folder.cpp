#include "analysis/run_folder.h"

#include <fstream>
#include <iterator>

#include "io/formats/json_text.h"
#include "io/run_paths.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A lock that may not be tried, or is missing, counts as free.
bool is_under_way(Disk& disk, const std::string& run_dir) try {
  const std::string path = run_dir + '/' + kRunLock;
  return disk.exists(path) && !disk.lock(path, "");
} catch (const OperatingError&) {
  return false;
}

}  // namespace

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

const char* name(RunCondition condition) {
  static constexpr const char* kNames[] = {"running", "ended", "failed", "killed", "damaged"};
  return kNames[static_cast<int>(condition)];
}

RunEnding ending_of(Disk& disk, const std::string& run_dir) {
  if (is_under_way(disk, run_dir))
    return {RunCondition::kRunning, "on " + read_file(run_dir + '/' + kRunLock)};
  const std::string text = read_file(run_dir + '/' + kResultFile);
  if (text.empty()) return {RunCondition::kKilled, "it left no result; log/ has the last that each rank did"};
  const Json result = parse_json<Json>(text, nullptr, /*allow_exceptions=*/false);
  if (!result.is_object())
    return {RunCondition::kEnded, std::string(kResultFile) + " cannot be read, so nobody knows how"};
  const bool failed = result.value("ended", "") == "error";
  return {failed ? RunCondition::kFailed : RunCondition::kEnded, result.value("reason", ""), result.dump()};
}

}  // namespace tutti
