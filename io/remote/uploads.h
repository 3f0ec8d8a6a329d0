#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/remote/remote_store.h"
#include "runtime/clock.h"
#include "runtime/log.h"

namespace tutti {

// Copies published checkpoints to a remote folder, on a thread of its own, the newest first. Nobody waits for
// the copies but `finish`. Failures are warnings in the log; a checkpoint that failed is tried again after
// the next. The manifest is copied last, so that a partial copy is no checkpoint, and then the file that
// names the newest.
class Uploads {
 public:
  struct Options {
    RemoteStore::Options store;  // its while_waiting is overwritten
    std::string run_dir;
    std::string checkpoints;  // the local folder
    CheckpointSet set;
    int keep = -1;            // the newest in the remote folder that stay; negative = all
    bool keeps_best = false;  // checkpoints that only the remote folder has may be the best, and stay
  };
  // `log` must outlive the object.
  Uploads(Options options, Log& log);
  ~Uploads();  // ends a command that runs

  // Call first: `own` are the run's checkpoints in the local folder. Those that the remote folder lacks are
  // copied.
  void begin(const std::vector<std::string>& own);
  void published(const std::string& name);
  // Call before a checkpoint beyond the number to keep is removed: the remote copy is removed too, once
  // enough newer ones are there. False if the checkpoint is being copied; then its local folder is removed
  // here afterwards.
  bool drop(const std::string& name);

  // Waits until nothing is left to do; false after the time limit.
  bool idle_within(Nanoseconds limit);
  // Waits for all copies, at most for the time limit or until `gives_up`, which is called often, and ends the
  // thread. Returns the names of checkpoints that are not in the remote folder.
  std::vector<std::string> finish(Nanoseconds limit, const std::function<bool()>& gives_up = {});

 private:
  struct Ended {};  // thrown to end the thread

  void run(const std::set<std::string>& own);
  void look_into_remote(const std::set<std::string>& own);
  void upload(const std::string& name);
  void copy(const std::string& name) const;
  bool is_newest(const std::string& name) const;
  void settle(const std::string& name, const std::string& problem);
  void remove_dropped();
  std::string next() const;  // "" = none
  void save_status() const;
  std::vector<std::string> missing() const;

  Options options_;
  RemoteStore store_;
  Log& log_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> waiting_, failed_;  // failed_: of waiting_, until the next is published
  std::set<std::string> remote_, partial_;  // names in the remote folder: whole, and perhaps a part
  std::set<std::string> dropped_;           // to be removed there
  std::string uploading_, removing_, newest_, problem_;  // removing_: here, not in the store
  bool drops_uploading_ = false;                         // uploading_ is to be removed here, too
  bool begun_ = false, ending_ = false, idle_ = false;
  std::thread thread_;
};

}  // namespace tutti
