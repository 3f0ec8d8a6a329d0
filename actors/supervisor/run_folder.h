#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"

namespace tutti {

// The folder of a run: used by one run at a time, and shared by all ranks.
class RunFolder {
 public:
  RunFolder(Disk& disk, std::string path, std::string checkpoints);

  // Rank 0: creates and locks the folders of the run and its checkpoints. If another run uses the folders,
  // warns, and waits some seconds for that run's end. Throws UserError if the other run continues,
  // OperatingError if the folders cannot be created.
  void open(Context& context, const std::string& host, Log& log);

  // Rank 0 writes a nonce. A rank that does not find the nonce does not share the folder.
  void write_nonce(const std::string& nonce);
  bool has_nonce(const std::string& nonce) const;
  void remove_nonce();

  // Writes recipe.toml, once all ranks agree to start: a refused start leaves an earlier run unchanged.
  void write_recipe(const std::string& recipe);

  // Removes the journals of attempts before the newest `keep`.
  void prune_journals(int keep);

  // Names the folder that was moved, removed or emptied since `open`; "" if none.
  std::string gone() const;

  // True once after `tutti stop` has created its file.
  bool stop_requested();

  const std::string& path() const { return path_; }

 private:
  std::string nonce_path() const { return path_ + "/.nonce"; }
  std::unique_ptr<DiskLock> lock(Context& context, const std::string& folder, const std::string& host,
                                 Log& log);

  Disk& disk_;
  std::string path_;
  std::string checkpoints_;
  // A file that goes with its folder.
  struct Held {
    std::string path;
    std::unique_ptr<DiskLock> lock;  // none on the recipe, which a shell's `*` takes and the lock not
    uint64_t identity = 0;           // of the lock's file; an editor may replace the recipe
  };
  std::vector<Held> held_;
};

}  // namespace tutti
