#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/disk.h"
#include "sim/environment/disk_tree.h"

namespace tutti {

// A file system in memory, shared by ranks. Other paths are read from the real disk, which is never written.
//
// The end of a process loses no data; a power loss loses unsynced data (DiskTree). Not thread-safe: used by
// the holder of the run token.
class SimDisk {
 public:
  // kFull and kFails throw; kLost and kTorn report success, and store no byte or the first half.
  enum class WriteOutcome { kDone, kFull, kFails, kLost, kTorn };
  struct Call {
    int rank = 0;
    const std::string& path;
    std::optional<std::span<const std::byte>> bytes = {};  // of a write
    bool reads = false;                                    // a file
  };
  // Called before each change and each reading of a file; may throw. The result counts for writes only.
  using Hook = std::function<WriteOutcome(const Call&)>;

  SimDisk() = default;

  // True if the outcome changes the result of this write. Bytes that are not stored read as zeros.
  static bool changes_write(WriteOutcome outcome, std::span<const std::byte> bytes);

  // Adds the real folder with all files below. From then on only the bytes of files are read from the real
  // folder.
  void mirror(const std::string& folder);
  // True if the file at `path` was written here.
  bool wrote(const std::string& path) const;

  // The disk of a rank's process; must not outlive this disk.
  std::unique_ptr<Disk> view(int rank, Hook hook = {});

  // Frees the locks of a rank whose process ended.
  void release_locks(int rank);

  // All processes must have ended.
  void lose_power(const RandomKey& draw);
  // A copy of the disk after a power loss.
  std::unique_ptr<SimDisk> after_power_loss(const RandomKey& draw) const;

  // True if a write to the file, or to a file below the folder, was lost or torn.
  bool damaged(const std::string& path) const;

 private:
  class View;
  class File;
  class Lock;
  void add_real(const std::string& folder);
  bool mirrors(const std::string& path) const;

  DiskTree tree_;
  std::vector<std::string> mirrored_;                          // absolute, with a slash at the end
  std::map<const DiskNode*, std::pair<int, uint64_t>> locks_;  // the rank and the lock's number
  uint64_t lock_count_ = 0;
};

}  // namespace tutti
