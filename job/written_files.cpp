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
  const fs::path found = fs::weakly_canonical(plain_path(path), unknown);
  return plain_path(unknown ? path : found.string());
}

bool lies_below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

bool clash(const Written& one, const Written& other) {
  if (one.path == other.path) return true;
  const bool is_named_folder = other.is_folder && other.key;
  return (lies_below(one.path, other.path) && !is_named_folder) ||
         (lies_below(other.path, one.path) && !one.is_folder);
}

void add_inputs(const Setting& data, std::vector<Written>& all) {
  if (data.is_array())
    for (const Setting& one : data.array()) add_inputs(one, all);
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
    for (const auto& one : fresh) require_free(one);
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

  void require_free(const Written& one) const {
    for (const char* own : {"/metrics.jsonl", "/metrics.earlier"})
      if (one.path.starts_with(run_dir_ + own)) refuse(one, {run_dir_ + "/metrics.jsonl"});
    if (!one.is_folder && (one.path == run_dir_ || lies_below(run_dir_, one.path))) refuse(one, {run_dir_});
    for (const auto& other : all_)
      if (clash(one, other)) refuse(one, other);
  }

  [[noreturn]] static void refuse(const Written& one, const Written& other) {
    if (other.is_input)
      one.key->fail("expected another name: " + other.key->path_as_written() + " is read from there");
    if (other.key)
      one.key->fail(other.key->path_as_written() + " = \"" + other.key->as_written() + "\" (" +
                    other.key->position.text() + ") writes there too; each needs a name of its own");
    one.key->fail("expected another name: " + std::filesystem::path(other.path).filename().string() +
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
