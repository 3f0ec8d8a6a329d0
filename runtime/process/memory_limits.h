#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tutti {

// The limits of the system on the memory of this process: `ulimit -v` and `ulimit -d`, and the limits of its
// control group (cgroup v1 or v2) and the groups above. Beyond the former an allocation fails; beyond the
// latter the kernel kills the process. The limits are read once, the used memory at each call.
class MemoryLimits {
 public:
  // The kind of a new block of memory.
  enum class Place {
    kHeap,   // free memory within the heap may serve
    kMapped  // pages of its own
  };

  // `process`: the folder of this process in /proc. `sharers`: the ranks of a run in this control group,
  // which allocate about the same at about the same time.
  explicit MemoryLimits(const std::string& process = "/proc/self", int sharers = 1);
  ~MemoryLimits();
  MemoryLimits(const MemoryLimits&) = delete;
  MemoryLimits& operator=(const MemoryLimits&) = delete;

  bool any() const { return !limits_.empty(); }
  // True if the address space is limited, which memory uses up that is reserved and never written.
  bool limit_addresses() const;
  // True if there is a limit that the kernel enforces by killing.
  bool kills() const;

  // True if each of the sharers may have as many bytes, and all together leave `reserve` bytes. Thread-safe;
  // allocates no memory.
  bool fit(int64_t bytes, int64_t reserve, Place place) const;

  // Throws OperatingError if a rank cannot start: MPI, threads and libtorch need about 60 MB more, and
  // addresses for two stacks for each of `threads`. Ranks that started already are counted as used memory.
  void require_start(int threads) const;

  // "`ulimit -v` of 800.0 MB, of which 2.1 MB are left": the limit with the least left.
  std::string text() const;

 private:
  class SystemFile;
  class Limit;
  class OfProcess;
  class OfGroup;
  void add_groups(const std::string& process, int sharers);
  void add_group(const std::string& folder, bool second_version, int sharers);

  std::vector<std::unique_ptr<Limit>> limits_;
};

}  // namespace tutti
