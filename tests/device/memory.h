#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/device/arena.h"
#include "tests/device/order.h"

namespace tutti::test_device {

// A use of bytes by a kernel.
struct Access {
  const char* begin;
  const char* end;
  int stream;
  uint64_t kernel;
  bool write;
  const std::string* name;
};

struct Block {
  char* at;
  std::size_t bytes;  // asked for
  std::size_t capacity;
  int device;  // kPinned: pinned memory
  int stream;  // of the allocation
  int pool;    // the graph that has it, or 0
  bool live = true;
  std::set<int> used_by;         // streams of record_stream
  Clock free_after;              // when the block was freed, what those streams had still to do
  std::vector<Access> accesses;  // by kernels that a new one may conflict with; kept when the block is freed
};

constexpr int kPinned = kDevices;  // after the devices, with an arena of its own

// The memory of all devices and pinned memory: blocks, who uses them, and what was found. Freed blocks are
// reused by allocations of the same stream and capacity, the newest first, so that whoever still uses one is
// found soon.
class Memory {
 public:
  static constexpr int64_t kBytesOfADevice = int64_t{4} << 30;

  void map();

  // `known`: what somebody knows to be over. Throws c10::OutOfMemoryError at the budget, at an injected
  // failure, or if the device is full.
  // `pool`: the graph that allocates, which keeps the memory, or 0.
  Block& take(int device, int stream, std::size_t bytes, const Clock& known, int pool = 0);
  // `at`: the start of a live block. The freeing thread's knowledge orders what happens to the block next.
  void give(const void* at, const Order& order);
  void record_stream(const void* at, int stream);

  // The graph is gone: nobody has its memory, but who has tensors in it.
  void release_pool(int pool);
  void fill_pool(int pool, int byte);

  // Forgets freed blocks. All kernels must be over.
  void release_cached();

  // A kernel uses bytes, in a block or outside of all. Unordered conflicts become findings.
  // `pool`: the kernel's graph, which may use what was freed in it.
  void note(const Kernel& kernel, const char* begin, const char* end, bool write, int pool = 0);

  std::vector<std::string> take_findings();
  bool prints = false;  // findings, to stderr, at once

  // Closes a pinned block to the host: to reads and writes, or to writes only, until the host knows the
  // kernel to be over.
  void close_pinned(const Kernel& kernel, const void* at, bool to_reads);
  void open_pinned(const Clock& host);

  Block* block_of(const void* front) const;
  // "block of n bytes of device 0, last used by k on stream 1".
  std::string describe(const void* front) const;

  c10::CachingDeviceAllocator::DeviceStats& stats(int device) { return account(device).stats; }

  Arena device_arena;
  Arena pinned_arena;
  struct Account {
    c10::CachingDeviceAllocator::DeviceStats stats;
    int64_t budget = 0;  // 0 = none
    int64_t asked = 0;
    int64_t next_failure = 0;            // the value of `asked` that fails; 0 = none
    std::map<char*, std::size_t> holes;  // address ranges without a block
  };
  Account& account(int device) { return accounts_[static_cast<std::size_t>(device)]; }

 private:
  struct Copy {  // an asynchronous copy from or to pinned memory
    Block* block;
    int stream;
    uint64_t kernel;
    bool to_reads;
  };
  using Cache = std::map<std::tuple<int, int, std::size_t, int>, std::vector<Block*>>;

  Block* reuse(int device, int stream, std::size_t capacity, const Clock& known, int pool);
  Block* carve(int device, int stream, std::size_t capacity, int pool);
  void count_free(const Block& block);
  void add_hole(int device, char* at, std::size_t bytes);
  void protect(const Block& block) const;
  void report(const std::string& finding);

  std::map<const char*, std::unique_ptr<Block>> blocks_;  // live and cached
  Cache cache_;
  std::array<Account, kDevices + 1> accounts_;
  std::vector<Copy> copies_;
  std::vector<std::string> findings_;
  std::set<std::string> seen_;  // those of findings_
};

}  // namespace tutti::test_device
