#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace tutti {

class MemoryLimits;

inline constexpr double kBytesPerMb = 1e6;

// Counts the bytes of CPU tensors per rank. Installed once per process as libtorch's CPU allocator. A 64-byte
// header before each block holds its size and owner, so that any thread may free it.
//
// Freed blocks of kCachedBytes and more are cached (up to 1 GiB) and reused: otherwise the system unmaps the
// blocks, and every step pays for new pages. The cache is emptied when any request runs out of memory.
//
// Where the system limits memory (MemoryLimits), tensors run out of memory kReserveBytes before the limit,
// and within a MemoryScope twice as much: libraries without memory end the process by a signal, and so does
// the kernel at the limit of a control group.
class Meter {
 public:
  static constexpr int kMaxRanks = 1024 + 1;  // in a process; and the simulator's launcher
  static constexpr int64_t kCachedBytes = int64_t{128} << 10;
  static constexpr int64_t kReserveBytes = int64_t{32} << 20;

  // Makes libtorch allocate all CPU tensors through the meter, within the limits of the system. Idempotent.
  static void install();

  // The limits of the system; null = none. Set before tensors are allocated, by `install` and by tests.
  static void set_limits(std::unique_ptr<const MemoryLimits> limits);

  // "`ulimit -v` of 800.0 MB, of which 2.1 MB are left"; "" = the system has no limit.
  static std::string limit();

  // True if other code than the meter may allocate as many bytes within the limits of the system.
  static bool fits(int64_t bytes);

  // Returns free memory of the cache and of the heap to the system.
  static void give_back();
  // Returns free memory of the rank's device, if any, to the driver: the next blocks may be larger. Waits for
  // the device, so no collective may be in progress that a rank has yet to launch.
  static void empty_device_cache(int rank);

  // Sets the owner of new blocks: the process's rank, or in the simulator the rank with the run token. A
  // slot, not a global rank: a process with one rank may leave the slot at 0.
  static void set_owner(int rank);

  static int64_t used_bytes(int rank);
  static int64_t peak_bytes(int rank);  // since the last reset
  static void reset_peak(int rank);

  // Limits the bytes of the rank when a MemoryScope allocates; 0 = no limit.
  static void set_budget(int rank, int64_t bytes);
  static int64_t budget(int rank);

  // Counts the memory of this device in the slot, in place of CPU tensors: `used`, `peak`, budgets, scopes
  // and failures are of the device then. Several slots may have one device; its bytes count for each. The
  // CPU: counts CPU tensors again.
  static void count_device(int rank, c10::Device device);
  // For devices whose allocator does not ask before_device_allocation: called with a device and the budget of
  // its slot, 0 = none. Scopes, ordinals and failures do not hold there.
  static void limit_devices_by(void (*limit)(int device, int64_t bytes));
  // For the device's allocator, before an allocation: throws if a MemoryScope of this thread says so.
  static void before_device_allocation(int device, std::size_t bytes);

  // True if the meter allocated the tensor's memory. Other memory (shared memory) may be counted by `charge`,
  // and subtracted by a negative number.
  static bool counts(const at::Tensor& tensor);
  static void charge(int rank, int64_t bytes);

  // Bytes allocated within MemoryScopes of the rank and not yet freed (of a device: all bytes); number of
  // allocations in such scopes.
  static int64_t scoped_bytes(int rank);
  static int64_t scoped_allocations(int rank);
  // A level for comparison with later levels: bytes that work within scopes holds. A device's level sinks by
  // allocations outside of scopes (batches read ahead), and is 0 if the device's allocator does not ask
  // before_device_allocation.
  static int64_t held_by_scopes(int rank);

  // Makes future allocations in the rank's scopes fail: ordinals in ascending order, the next allocation
  // is 1. For replays and tests.
  static void fail_at(int rank, const std::vector<int64_t>& ordinals);
  static int64_t failures_left(int rank);

  // The first allocation after the place-th place from now on in scopes of the rank (MemoryScope::pass_place)
  // fails; 0: none.
  static void fail_at_place(int rank, int64_t place);
};

// Describes a failed allocation.
struct FailedAllocation {
  int64_t asked_bytes = 0;
  int64_t used_bytes = 0;    // of the rank at that time
  int64_t budget_bytes = 0;  // 0 = the system had no more memory
  int64_t ordinal = 0;       // within the scope, from 1; kNotSeen: not thrown by the meter
  int64_t place = 0;         // the last that was passed before, from 1: see MemoryScope::pass_place

  std::string words = {};  // the limit of the system that was met; if not thrown by the meter, the error's

  static constexpr int64_t kNotSeen = -1;
};

// During the object's lifetime, an allocation of this thread that exceeds the rank's budget throws
// c10::OutOfMemoryError. Other threads are not limited.
class MemoryScope {
 public:
  explicit MemoryScope(int rank);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // Marks a place that work within the current scope passes, if any: the begin of the scope, of a microbatch
  // and of its backward, and each message about a collective. Other kinds of devices ask for memory in
  // another order and number, but pass the same places.
  static void pass_place();

  // The last failure within the scope.
  const std::optional<FailedAllocation>& failure() const { return failure_; }

  // True if the memory of a device is limited, and not the CPU's.
  bool on_device() const { return on_device_; }
  int64_t places() const;  // passed so far

  // For the allocators. `check` throws if `bytes` more exceed the budget; `note_failure` sets `failure()`.
  void check(int64_t bytes);
  void note_failure(int64_t bytes, int64_t budget, const std::string& limit = {});

 private:
  int rank_;
  bool on_device_;
  MemoryScope* outer_;
  int64_t first_ = 0, first_place_ = 0;
  std::optional<FailedAllocation> failure_;
};

// Suspends the current MemoryScope: allocations are neither limited nor counted as the scope's.
class MemoryScopePause {
 public:
  MemoryScopePause();
  ~MemoryScopePause();
  MemoryScopePause(const MemoryScopePause&) = delete;
  MemoryScopePause& operator=(const MemoryScopePause&) = delete;

 private:
  MemoryScope* paused_;
};

}  // namespace tutti
