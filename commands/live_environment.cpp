#include "commands/live_environment.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "io/json/json_line.h"
#include "io/remote/remote_checkpoints.h"
#include "io/replaced_file.h"
#include "io/run_paths.h"
#include "job/make_job.h"
#include "job/records/run_journal.h"
#include "job/records/run_report.h"
#include "recipe/catalog.h"
#include "recipe/placeholders.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/process/process_watch.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr Nanoseconds kUploadsUnsaid = std::chrono::seconds(1);  // a wait without a line of output

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

RemoteStore::Options store_options(const RemoteKeys& keys, const Setting& user, const std::string& folder,
                                   const std::string& run_dir) {
  keys.require_whole_commands();
  require_remote_path(user, folder);
  return {.keys = keys,
          .commands = keys.commands(user),
          .folder = folder,
          .log = absolute(run_dir) + "/log/remote.log"};
}

// The files of a run that begins.
class FetchedStart {
 public:
  FetchedStart(const Setting& recipe, const std::string& run_dir, const std::string& resume)
      : keys_(RemoteKeys::read(recipe)),
        settings_(RunSettings::read(recipe).checkpoint),
        from_(start_from(recipe, resume)),
        run_dir_(absolute(run_dir)),
        checkpoints_(run_dir_ + "/checkpoints") {
    disk_.make_folders(run_dir_ + "/log");
  }

  void fetch() {
    const auto alone = disk_.lock(run_dir_ + '/' + kRunLock, "the start of a run");
    if (!alone)
      throw UserError({run_dir_},
                      "another process trains into this folder; name another --run-dir, or stop it");
    if (!settings_.remote_folder->empty()) open_own();
    const Setting& path = from_.load_path;
    if (path.is_text() && is_remote_path(path.text()) && (from_.autoresume.is_none() || local().empty()))
      fetch_loaded(path);
  }

 private:
  std::vector<std::string> local() const {
    return published_checkpoints(disk_, checkpoints_, settings_.set.names);
  }

  RemoteStore store_at(const Setting& user, const std::string& folder) const {
    RemoteStore::Options options = store_options(keys_, user, folder, run_dir_);
    options.log = run_dir_ + "/log/remote-start.log";
    options.on_retry = print_warning;
    options.while_waiting = [] { require_no_held_stop("files of a remote store were copied"); };
    return RemoteStore(options);
  }

  // A store may not know a folder without files, so the folder gets a file.
  void open_own() try {
    const Given<std::string>& folder = settings_.remote_folder;
    const RemoteStore store = store_at(folder.key, folder);
    name_folder(store);
    const auto there = remote_checkpoints(store, settings_.set);
    if (from_.autoresume.is_none() && !there.empty())
      folder.fail("has checkpoints (" + joined_briefly(there) +
                  "), with which those of a run that starts afresh would be mixed; --resume auto continues, "
                  "another save_folder keeps them apart");
    if (!from_.autoresume.is_none()) fetch_newer(store, there);
  } catch (const OperatingError& error) {
    if (error.kind() == EndKind::kInterrupted) throw;
    if (from_.autoresume.is_none() || local().empty()) settings_.remote_folder.key.fail(error);
    print_warning(std::string(error.what()) + "; the run resumes from its local checkpoints");
  }

  static std::string joined_briefly(const std::vector<std::string>& names) {
    return names[0] + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
  }

  void name_folder(const RemoteStore& store) {
    const std::string path = store.scratch("run");
    replace_file(disk_, path, "Checkpoints of tutti, of the run in " + run_dir_ + "\n");
    store.upload(path, "tutti.txt");
    disk_.remove_all(path);
  }

  // Checkpoints that the folder has are not fetched, nor older ones.
  void fetch_newer(const RemoteStore& store, const std::vector<std::string>& there) {
    const std::vector<std::string> have = local();
    disk_.make_folders(checkpoints_);
    for (const std::string& name : there) {
      if (std::ranges::count(have, name) > 0) return;
      if (!have.empty() && settings_.set.names.ordered({have.back(), name}).back() != name) return;
      if (fetched(store, name, checkpoints_ + '/' + name)) return;
    }
    if (have.empty() && !there.empty())
      settings_.remote_folder.fail("has checkpoints, and no good one; the warnings above say why");
  }

  bool fetched(const RemoteStore& store, const std::string& name, const std::string& folder) try {
    fetch_checkpoint(store, name, folder);
    print_text("fetched " + on_one_line(store.folder() + '/' + name) + '\n');
    return true;
  } catch (const OperatingError& error) {
    if (error.kind() == EndKind::kInterrupted) throw;
    print_warning("ignored: " + store.folder() + '/' + name + ": " + error.what());
    return false;
  }

  void fetch_loaded(const Setting& path) try {
    const RemoteStore store = store_at(path, path.text());
    const std::string folder = run_dir_ + '/' + kFetchedFolder;
    disk_.remove_all(folder);
    disk_.make_folders(folder);
    auto names = remote_checkpoints(store, {});
    if (names.empty()) names = remote_checkpoints(store, settings_.set);
    for (const std::string& name : names)
      if (fetched(store, name,
                  folder + '/' + (name.empty() ? fs::path(store.folder()).filename().string() : name)))
        return;
    path.fail("there is no good checkpoint of tutti's");
  } catch (const OperatingError& error) {
    if (error.kind() == EndKind::kInterrupted) throw;
    path.fail(error);
  }

  RemoteKeys keys_;
  CheckpointSettings settings_;
  StartFrom from_;
  std::string run_dir_, checkpoints_;
  PosixDisk disk_;
};

std::shared_ptr<Uploads> make_uploads(const Job& job, Log& log) {
  const auto& folder = job.settings.checkpoint.remote_folder;
  if (folder->empty()) return nullptr;
  return std::make_shared<Uploads>(
      Uploads::Options{store_options(RemoteKeys::read(job.recipe), folder.key, folder, job.run_dir),
                       absolute(job.run_dir), absolute(job.checkpoints), job.settings.checkpoint.set,
                       job.settings.checkpoint.keep, job.settings.checkpoint.best.has_value()},
      log);
}

// In the member `not_uploaded` of the run's result.
void note_in_result(const std::string& run_dir, const std::vector<std::string>& names, Log& log) try {
  PosixDisk disk;
  const std::string path = run_dir + '/' + kResultFile;
  std::string line = disk.read_text(path, kMostTextBytes);
  const std::string member = json_line({{"not_uploaded", names}});
  line.replace(line.rfind('}'), std::string::npos, ',' + member.substr(1) + '\n');
  replace_file(disk, path, line);
} catch (const std::exception& error) {
  log.warning(error.what());
}

}  // namespace

void make_live(RankEnvironment& environment, const Job& job, bool quiet) {
  const int rank = environment.rank();
  environment.recorder = make_recorder(job, rank, environment.host);
  if (!quiet) environment.log = make_log(rank_log_path(job.run_dir, rank), rank, rank == 0);
  environment.live = true;
  environment.after_interrupt = after_interrupt();
  environment.output.quiet = quiet;
  environment.process_started_s = process_started_s();
  environment.outside.start_child = start_child;
  environment.outside.open_http = open_http;
  if (rank == 0) environment.outside.uploads = make_uploads(job, *environment.log);
}

bool uses_remote(const Setting& recipe, const std::string& resume) {
  const CheckpointKeys keys = CheckpointKeys::kind().read(recipe.at("checkpoint"));
  return is_remote_path(keys.save_folder->value_or("")) || is_remote_path(resume) ||
         (keys.resume.is_text() && is_remote_path(keys.resume.text()));
}

void fetch_start(const Setting& recipe, const std::string& run_dir, const std::string& resume) {
  if (!uses_remote(recipe, resume)) return;
  FetchedStart(recipe, run_folder(run_dir, RunKeys::kind().read(recipe).run_name.value), resume).fetch();
}

bool finish_uploads(const RankEnvironment& environment, const Job& job) {
  Uploads* uploads = environment.outside.uploads.get();
  if (!uploads) return true;
  const Time limit = RemoteKeys::read(job.recipe).finish_timeout;
  const TimePoint until = std::chrono::steady_clock::now() + std::chrono::seconds(limit.count());
  if (!uploads->idle_within(kUploadsUnsaid) && !environment.output.quiet && !environment.output.json)
    print_text("waits for uploads to " + on_one_line(job.settings.checkpoint.remote_folder.value) +
               ", at most " + limit.text() + "; Ctrl-C ends the wait\n");
  std::fflush(stdout);
  const bool asked = stop_asked();
  const auto missing =
      uploads->finish(until - std::chrono::steady_clock::now(), [asked] { return !asked && stop_asked(); });
  if (missing.empty()) return true;
  environment.log->warning(joined(missing) + " not in " + job.settings.checkpoint.remote_folder.value +
                           " at the end of the run; tutti resume uploads what is missing; exit code 3");
  note_in_result(job.run_dir, missing, *environment.log);
  return false;
}

}  // namespace tutti
