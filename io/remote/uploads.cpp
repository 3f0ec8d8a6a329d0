#include "io/remote/uploads.h"

#include <algorithm>

#include "io/json/json_line.h"
#include "io/remote/remote_checkpoints.h"
#include "io/replaced_file.h"
#include "io/run_paths.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kStopLookInterval = std::chrono::milliseconds(200);

}  // namespace

Uploads::Uploads(Options options, Log& log)
    : options_([&] {
        options.store.while_waiting = [this] {
          const std::lock_guard lock(mutex_);
          if (ending_) throw Ended();
        };
        options.store.gives_way = true;
        options.store.on_retry = [&log](const std::string& what) { log.info(what); };
        return std::move(options);
      }()),
      store_(options_.store),
      log_(log) {}

Uploads::~Uploads() { finish(Nanoseconds(0)); }

void Uploads::begin(const std::vector<std::string>& own) {
  waiting_ = {own.begin(), own.end()};
  begun_ = true;
  thread_ = std::thread([this, own = waiting_] { run(own); });
}

void Uploads::published(const std::string& name) {
  const std::lock_guard lock(mutex_);
  waiting_.insert(name);
  dropped_.erase(name);
  failed_.clear();
  idle_ = false;
  changed_.notify_all();
}

bool Uploads::drop(const std::string& name) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(name);
  dropped_.insert(name);
  if (name == removing_) return false;
  if (name != uploading_) return true;
  drops_uploading_ = true;
  return false;
}

bool Uploads::idle_within(Nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return !begun_ || idle_; });
}

std::vector<std::string> Uploads::finish(Nanoseconds limit, const std::function<bool()>& gives_up) {
  const TimePoint until = std::chrono::steady_clock::now() + limit;
  {
    std::unique_lock lock(mutex_);
    failed_.clear();
    idle_ = idle_ && waiting_.empty();
    changed_.notify_all();
    while (thread_.joinable() && !idle_ && std::chrono::steady_clock::now() < until &&
           !(gives_up && gives_up()))
      changed_.wait_for(lock, std::min(limit, kStopLookInterval));
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return missing();
}

std::vector<std::string> Uploads::missing() const {
  std::set<std::string> names = waiting_;
  if (!uploading_.empty() && !drops_uploading_) names.insert(uploading_);
  return options_.set.names.ordered({names.begin(), names.end()});
}

std::string Uploads::next() const {
  std::vector<std::string> names;
  std::ranges::set_difference(waiting_, failed_, std::back_inserter(names));
  const auto ordered = options_.set.names.ordered(names);
  return ordered.empty() ? "" : ordered.back();
}

void Uploads::run(const std::set<std::string>& own) try {
  look_into_remote(own);
  save_status();
  for (;;) {
    std::unique_lock lock(mutex_);
    if (next().empty()) {
      idle_ = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [this] { return ending_ || !next().empty(); });
    if (ending_) return;
    uploading_ = next();
    waiting_.erase(uploading_);
    remote_.erase(uploading_);
    partial_.insert(uploading_);
    const std::string name = uploading_;
    lock.unlock();
    upload(name);
  }
} catch (const Ended&) {
} catch (const std::exception& error) {
  log_.warning("checkpoints are no longer copied to " + store_.folder() + ": " + error.what());
  const std::lock_guard lock(mutex_);
  idle_ = true;
  changed_.notify_all();
}

// Without a list every checkpoint is copied, and older ones stay there. A run that resumed on a bare machine
// has only the newest of its checkpoints. One that is published meanwhile replaces the copy of that name.
void Uploads::look_into_remote(const std::set<std::string>& own) try {
  const auto there = remote_checkpoints(store_, options_.set);
  const std::lock_guard lock(mutex_);
  for (const std::string& name : options_.set.names.ordered(there)) {
    remote_.insert(name);
    if (own.contains(name) && waiting_.erase(name) > 0)
      newest_ = name;
    else if (!options_.keeps_best && !waiting_.contains(name))
      dropped_.insert(name);
  }
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

void Uploads::upload(const std::string& name) {
  std::string problem;
  try {
    copy(name);
  } catch (const RunError& error) {
    problem = error.what();
  }
  settle(name, problem);
  if (problem.empty()) remove_dropped();
  save_status();
}

void Uploads::copy(const std::string& name) const {
  const std::string folder = options_.checkpoints + '/' + name;
  for (const std::string& file : PosixDisk().list(folder))
    if (file != kManifestFile) store_.upload(folder + '/' + file, name + '/' + file);
  store_.upload(folder + '/' + kManifestFile, name + '/' + kManifestFile);
  if (!options_.set.latest.empty() && is_newest(name)) name_latest(store_, options_.set.latest, name);
}

bool Uploads::is_newest(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return newest_.empty() || options_.set.names.ordered({newest_, name}).back() == name;
}

void Uploads::settle(const std::string& name, const std::string& problem) {
  bool removes = false;
  {
    const std::lock_guard lock(mutex_);
    removes = std::exchange(drops_uploading_, false);
    uploading_.clear();
    if (removes) dropped_.insert(name), removing_ = name;
    problem_ = problem;
    if (problem.empty()) {
      partial_.erase(name);
      remote_.insert(name);
      newest_ = options_.set.names.ordered({newest_, name}).back();
    } else if (!removes) {
      waiting_.insert(name);
      failed_.insert(name);
    }
  }
  if (problem.empty())
    log_.info("checkpoint " + name + " is in " + store_.folder());
  else
    log_.warning("checkpoint " + name + " is not in " + store_.folder() +
                 ", and is tried again with the next: " + problem);
  if (removes) try {
      PosixDisk disk;
      remove_checkpoint(disk, options_.checkpoints + '/' + name);
    } catch (const OperatingError& error) {
      log_.warning(error.what());
    }
  const std::lock_guard lock(mutex_);
  removing_.clear();
}

void Uploads::remove_dropped() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    if (options_.keep < 0) return;
    auto older = options_.set.names.ordered({remote_.begin(), remote_.end()});
    older.resize(older.size() - std::min(older.size(), std::max<std::size_t>(options_.keep, 1)));
    older.insert(older.end(), partial_.begin(), partial_.end());
    for (const std::string& name : older)
      if (dropped_.erase(name) > 0) names.insert(name);
    for (const std::string& name : names) {
      remote_.erase(name);
      partial_.erase(name);
    }
  }
  if (!store_.removes()) return;
  for (const std::string& name : names) try {
      store_.remove(name);
    } catch (const OperatingError& error) {
      log_.warning("checkpoint " + name + " stays in " + store_.folder() + ": " + error.what());
    }
}

void Uploads::save_status() const try {
  PosixDisk disk;
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    line = json_line(
        {{"folder", store_.folder()}, {"newest", newest_}, {"waiting", missing()}, {"problem", problem_}});
  }
  replace_file(disk, options_.run_dir + '/' + kUploadsFile, line + '\n');
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

}  // namespace tutti
