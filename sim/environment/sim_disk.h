#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/disk.h"
#include "sim/environment/disk_tree.h"

namespace tutti {

// A file system in memory that several ranks share. What it does not hold is read from the real one, which is
// never written to.
//
// A process that dies leaves everything as it was written; a power loss takes what was not synced: files by
// their sync, names by their folder's. Nothing is thread-safe: it is used under the run token.
class SimDisk {
 public:
  // What becomes of a write: it is done; it fails, and says so; or it is taken and never lands, as a whole or
  // from the middle on.
  enum class WriteOutcome { kDone, kFull, kFails, kLost, kTorn };
  struct Call {
    int rank = 0;
    const char* what = "";  // "write", "sync", "rename", ...
    const std::string& path;
    std::span<const std::byte> bytes = {};  // of a write
  };
  // Is told of each change before it happens; may throw. What it says counts for writes.
  using Hook = std::function<WriteOutcome(const Call&)>;

  SimDisk() = default;

  // Whether it makes a difference to a write of these bytes: where nothing landed there are zeros.
  static bool matters(WriteOutcome outcome, std::span<const std::byte> bytes);

  // What a rank's process sees; must not outlive this.
  std::unique_ptr<Disk> view(int rank, Hook hook = {});

  // What a process's end does: its locks are free.
  void release_locks(int rank);

  // All processes must be gone.
  void lose_power(const RandomKey& draw);
  // What would be found if the power were lost now.
  std::unique_ptr<SimDisk> after_power_loss(const RandomKey& draw) const;

  // Whether a write to something at or below the path was lost or torn.
  bool damaged(const std::string& path) const;

 private:
  class View;
  class File;
  class Lock;
  DiskTree tree_;
  std::map<const DiskNode*, std::pair<int, uint64_t>> locks_;  // whose, and which
  uint64_t locks_given_ = 0;
};

}  // namespace tutti
