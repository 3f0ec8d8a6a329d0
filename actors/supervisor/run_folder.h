#pragma once

#include <memory>
#include <string>

#include "runtime/actor/actor.h"
#include "runtime/disk.h"

namespace tutti {

// A run's folder: this run's alone, and the same on every rank.
class RunFolder {
 public:
  RunFolder(Disk& disk, std::string path, std::string checkpoints);

  // Rank 0: makes both folders and locks them; what was started just before may need a moment to end. Throws
  // UserError when another run is under way in them, OperatingError when they cannot be made.
  void open(Context& context, const std::string& host);

  // Rank 0 writes a nonce, which every rank must see: else the folder is not shared.
  void show(const std::string& nonce);
  bool shows(const std::string& nonce) const;
  void hide();

  // A start that is refused leaves an earlier run as it was; from here on the folder is this run's.
  void take(const std::string& recipe);

  // Removes the journals of all but the newest `keep` starts.
  void prune_journals(int keep);

  // Whether somebody asked the run to stop, by a file; asks once.
  bool stop_requested();

  const std::string& path() const { return path_; }

 private:
  std::string nonce_path() const { return path_ + "/.nonce"; }
  std::unique_ptr<DiskLock> lock(Context& context, const std::string& folder, const std::string& host);

  Disk& disk_;
  std::string path_;
  std::string checkpoints_;
  std::unique_ptr<DiskLock> lock_, checkpoints_lock_;
};

}  // namespace tutti
