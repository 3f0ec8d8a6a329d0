#include "job/written_files.h"

#include <filesystem>
#include <set>
#include <vector>

#include "io/run_paths.h"
#include "recipe/options.h"
#include "runtime/disk.h"
#include "runtime/text.h"
#include "training/callbacks/options.h"
#include "training/loggers/options.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// A path that is written or read, and its key.
struct Written {
  std::string path;
  const Setting* key = nullptr;  // null: of the run itself
  bool is_folder = false;
  bool is_input = false;
};

// Like plain_path, but with links resolved.
std::string true_path(const std::string& path) {
  std::error_code unknown;
  const fs::path canonical = fs::weakly_canonical(plain_path(path), unknown);
  return plain_path(unknown ? path : canonical.string());
}

bool lies_below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

bool clash(const Written& first, const Written& second) {
  if (first.path == second.path) return true;
  const bool is_named_folder = second.is_folder && second.key;
  return (lies_below(first.path, second.path) && !is_named_folder) ||
         (lies_below(second.path, first.path) && !first.is_folder);
}

void add_inputs(const Setting& data, std::vector<Written>& all) {
  if (data.is_array())
    for (const Setting& section : data.array()) add_inputs(section, all);
  if (!data.is_table()) return;
  if (const Setting* path = data.find("path"); path && path->is_text() && !path->text().empty())
    all.push_back({true_path(path->text()), path, /*is_folder=*/true, /*is_input=*/true});
  for (const auto& [name, member] : data.table()) add_inputs(member, all);
}

class WrittenFiles {
 public:
  explicit WrittenFiles(const Job& job)
      : run_name_(job.settings.run_name), run_dir_(true_path(job.run_dir)), world_(job.world) {
    const Setting& recipe = job.recipe;
    for (const char* file : {kRecipeFile, kStopFile, kRunLock, kResultFile, ".nonce"})
      all_.push_back({run_dir_ + "/" + file});
    for (const char* folder : {"log", "journal"}) all_.push_back({run_dir_ + "/" + folder, nullptr, true});
    const std::string checkpoints = true_path(job.checkpoints);
    if (checkpoints != run_dir_ && !lies_below(run_dir_, checkpoints))
      all_.push_back({checkpoints, nullptr, true});
    if (!recipe.position.file.empty()) all_.push_back({true_path(recipe.position.file)});
    for (const char* section : {"data", "evaluators"})
      if (recipe.has(section)) add_inputs(recipe.at(section), all_);
  }

  // {epoch} and {batch} are not replaced: names that differ in them do not clash.
  void add(const Setting& key, const WrittenFile& file) {
    std::set<std::string> paths;
    for (int rank = 0; rank < (file.by_rank ? world_ : 1); ++rank) {
      const std::string path = logger_path(run_dir_, run_name_, rank, file.path);
      if (!file.path.starts_with('/')) require_inside(key, plain_path(path));
      paths.insert(true_path(path));
    }
    std::vector<Written> fresh;
    for (const auto& path : paths) {
      require_kind(key, path, file.is_folder);
      fresh.push_back({path, &key, file.is_folder});
      if (!file.is_folder) fresh.push_back({path + ".new", &key});  // while it is replaced
    }
    for (const auto& file : fresh) require_free(file);
    all_.insert(all_.end(), fresh.begin(), fresh.end());
  }

 private:
  // For a name that is not written as an absolute path.
  void require_inside(const Setting& key, const std::string& path) const {
    if (path != run_dir_ && !lies_below(path, run_dir_))
      key.fail("leads out of the run's folder, to " + path +
               "; expected a name in that folder, or an absolute path");
  }

  static void require_kind(const Setting& key, const std::string& path, bool is_folder) {
    if (!is_folder && !PosixDisk().replaceable(path))
      key.fail("expected a file; " + path + " is a folder, a pipe or a device");
    std::error_code unknown;
    if (is_folder && fs::exists(path, unknown) && !fs::is_directory(path, unknown))
      key.fail("expected a folder, and " + path + " is none");
  }

  void require_free(const Written& file) const {
    for (const char* own : {"/metrics.jsonl", "/metrics.earlier"})
      if (file.path.starts_with(run_dir_ + own)) refuse(file, {run_dir_ + "/metrics.jsonl"});
    if (!file.is_folder && (file.path == run_dir_ || lies_below(run_dir_, file.path)))
      refuse(file, {run_dir_});
    for (const auto& other : all_)
      if (clash(file, other)) refuse(file, other);
  }

  [[noreturn]] static void refuse(const Written& first, const Written& second) {
    if (second.is_input)
      first.key->fail("expected another name: " + second.key->path_as_written() + " is read from there");
    if (second.key)
      first.key->fail(second.key->path_as_written() + " = \"" + second.key->as_written() + "\" (" +
                      second.key->position.text() + ") writes there too; each needs a name of its own");
    first.key->fail("expected another name: " + std::filesystem::path(second.path).filename().string() +
                    " is the run's own");
  }

  std::string run_name_, run_dir_;
  int world_;
  std::vector<Written> all_;
};

template <class OfKinds>
void add_sections(const Setting& recipe, const char* name, WrittenFiles& files) {
  if (!recipe.has(name)) return;
  for (const Setting& section : recipe.at(name).array())
    if (const auto file = OfKinds::written(section)) files.add(section.at(file->key), *file);
}

}  // namespace

void check_written_files(const Job& job) {
  WrittenFiles files(job);
  add_sections<LoggerKinds>(job.recipe, "loggers", files);
  add_sections<CallbackKinds>(job.recipe, "callbacks", files);
}

}  // namespace tutti
