#include "actors/supervisor/checkpoint_store.h"

#include <algorithm>

#include "io/checkpoint/checkpoint_summary.h"
#include "io/checkpoint/saved_state.h"
#include "io/foreign/foreign_checkpoint.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

// "" if the state has no name.
std::string run_name_in(const std::string& state) try {
  return RunState::from_json(state).run_name;
} catch (const OperatingError&) {
  return "";
}

std::string run_name_of(const Disk& disk, const std::string& folder) try {
  return run_name_in(read_manifest(disk, folder).state);
} catch (const OperatingError&) {
  return "";
}

// An unreadable checkpoint has no measured values.
BestState best_state_of(const Disk& disk, const std::string& folder) try {
  return state_in(disk, folder).best;
} catch (const OperatingError&) {
  return {};
}

}  // namespace

CheckpointStore::CheckpointStore(Disk& disk, Log& log, const Job& job, Uploads* uploads)
    : disk_(disk),
      log_(log),
      uploads_(uploads),
      folder_(job.checkpoints),
      imported_(job.run_dir + "/imported"),
      run_name_(job.settings.run_name),
      settings_(job.settings.checkpoint) {}

CheckpointStore::Choice CheckpointStore::choose(const StartFrom& from) {
  restore_replaced(disk_, folder_, settings_.set.names);
  if (!from.autoresume.is_none()) {
    const std::string own = newest_own(from.autoresume);
    if (!own.empty()) return {own, true};
  }
  require_no_others();
  return {from.load_path.is_none() ? "" : found_at(from.load_path), false};
}

CheckpointSearch CheckpointStore::search() {
  return {.on_bad =
              [this](const std::string& problem) {
                if (named_.insert(problem).second) log_.warning("ignored: " + problem);
              },
          .verify =
              [this](const Checkpoint& checkpoint) {
                const auto rejected = rejected_.find(checkpoint.folder);
                if (rejected != rejected_.end()) {
                  TUTTI_PROBE("resume: a rejected checkpoint is ignored");
                  throw OperatingError(rejected->second);
                }
              }};
}

std::string CheckpointStore::newest_own(const Setting& asked) try {
  const Checkpoint newest = newest_good_checkpoint(disk_, folder_, search(), settings_.set);
  const std::string run_name = newest.folder.empty() ? "" : run_name_in(newest.manifest.state);
  const bool foreign = !run_name.empty() && run_name != run_name_;
  if (foreign) refuse_run(newest.folder, run_name);
  return foreign ? "" : newest.folder;
} catch (const OperatingError& error) {
  asked.fail(error);
}

std::string CheckpointStore::found_at(const Setting& load_path) try {
  const std::string& path = load_path.text();
  if (!is_foreign_checkpoint(disk_, path)) return find_checkpoint(disk_, path, search()).folder;
  write_manifest(disk_, imported_, foreign_checkpoint(disk_, path).manifest);
  return imported_;
} catch (const RunError& error) {
  load_path.fail(error);
}

// A fresh start moves aside checkpoints of an earlier run of the same name; those of another run only if the
// user allows.
void CheckpointStore::require_no_others() const {
  for (const auto& name : published_checkpoints(disk_, folder_, settings_.set.names)) {
    const std::string run_name = run_name_of(disk_, folder_ + "/" + name);
    if (!run_name.empty() && run_name != run_name_) refuse_run(folder_ + "/" + name, run_name);
  }
}

void CheckpointStore::refuse_run(const std::string& checkpoint, const std::string& run_name) const {
  const Setting& overwrite = settings_.save_overwrite;
  if (overwrite.is_none() || overwrite.boolean()) return;
  overwrite.fail(checkpoint + " is of the run \"" + run_name + "\", and this one is \"" + run_name_ +
                 "\"; true puts it aside, and another save_folder or run folder leaves it alone");
}

void CheckpointStore::begin(const std::string& resumed) {
  disk_.make_folders(folder_);
  remove_unpublished(disk_, folder_, settings_.set.names);
  const auto names = published_checkpoints(disk_, folder_, settings_.set.names);
  const std::size_t own = own_steps(names, resumed);
  if (own > 0 && own < names.size()) TUTTI_PROBE("checkpoint: later checkpoints are put aside");
  if (own == 0 && !names.empty()) TUTTI_PROBE("checkpoint: a fresh start puts all aside");
  if (own < names.size()) move_aside({names.begin() + static_cast<int64_t>(own), names.end()});
  if (uploads_) uploads_->begin({names.begin(), names.begin() + static_cast<int64_t>(own)});
  if (own == 0) return;
  resumed_ = names[own - 1];
  if (own == 1) TUTTI_PROBE("checkpoint: the run resumes from the oldest");
  if (!settings_.set.latest.empty()) disk_.symlink(resumed_, folder_ + "/" + settings_.set.latest);
}

// The number of checkpoints up to the resumed one, inclusive.
std::size_t CheckpointStore::own_steps(const std::vector<std::string>& names,
                                       const std::string& resumed) const {
  if (resumed.empty()) return 0;
  // A checkpoint may have lost its manifest in a crash.
  const auto manifest = [this](const std::string& folder) {
    const std::string path = folder + "/manifest.json";
    return disk_.exists(path) ? disk_.read_text(path, kMostManifestBytes) : std::string();
  };
  const auto resumed_manifest = manifest(resumed);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (manifest(folder_ + '/' + names[i]) == resumed_manifest) return i + 1;
  return 0;
}

void CheckpointStore::move_aside(const std::vector<std::string>& names) {
  const std::string aside = unused_path(disk_, folder_ + "/earlier");
  disk_.make_folders(aside);
  if (!settings_.set.latest.empty()) disk_.remove_all(folder_ + "/" + settings_.set.latest);
  if (settings_.best) disk_.remove_all(folder_ + '/' + kBest);
  for (const auto& name : names) disk_.rename(folder_ + "/" + name, aside + "/" + name);
  disk_.sync_folder(folder_);
  log_.warning("checkpoints that this run does not resume from are now in " + aside);
}

std::string CheckpointStore::publish(const std::string& name, const std::string& unfinished,
                                     const CheckpointManifest& manifest) {
  try {
    publish_checkpoint(disk_, unfinished, folder_ + "/" + name, manifest, settings_.set.latest, &layout_);
  } catch (const OperatingError& error) {
    TUTTI_PROBE("checkpoint: rank 0 cannot publish");
    return error.what();
  }
  values_.erase(name);
  if (uploads_) uploads_->published(name);
  prune(name);
  return "";
}

void CheckpointStore::discard(const std::string& unfinished) try {
  disk_.remove_all(unfinished);
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

// Checkpoints of later steps than `newest` stay: they are damaged, or are replaced when their steps are
// redone.
void CheckpointStore::prune(const std::string& newest) try {
  auto names = published_checkpoints(disk_, folder_, settings_.set.names);
  const auto at = std::find(names.begin(), names.end(), newest);
  if (at != names.end()) names.erase(at + 1, names.end());
  std::vector<std::string> best;
  if (settings_.best) best = best_checkpoints(*settings_.best, measured(names));
  if (!best.empty()) disk_.symlink(best[0], folder_ + '/' + kBest);
  if (settings_.keep < 0) return;
  if (std::ssize(names) > std::max(settings_.keep, 1))
    TUTTI_PROBE("checkpoint: an old checkpoint is removed");
  for (std::size_t i = 0; i + std::max(settings_.keep, 1) < names.size(); ++i)
    if (names[i] != resumed_ && std::ranges::count(best, names[i]) == 0 &&
        (!uploads_ || uploads_->drop(names[i])))
      remove_checkpoint(disk_, folder_ + "/" + names[i]);
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

// Reads each manifest once.
std::vector<std::pair<std::string, double>> CheckpointStore::measured(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, double>> measured;
  for (const auto& name : names) {
    auto known = values_.find(name);
    if (known == values_.end())
      known = values_.emplace(name, best_state_of(disk_, folder_ + '/' + name)).first;
    if (known->second.measured) measured.emplace_back(name, known->second.value);
  }
  return measured;
}

}  // namespace tutti
