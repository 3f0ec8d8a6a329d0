#include "tensors/meter.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMaxCachedBytes = std::size_t{1} << 30;

struct Header {
  std::size_t bytes;     // asked for
  std::size_t capacity;  // of the block, header included
  int owner;
};

struct Account {
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> peak{0};
};

// Freed large blocks by capacity. Bounded, so that a model whose shapes vary does not hoard.
class BlockCache {
 public:
  void* take(std::size_t capacity) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(capacity);
    if (found == blocks_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    held_bytes_ -= capacity;
    return block;
  }

  bool keep(void* block, std::size_t capacity) {
    std::lock_guard lock(mutex_);
    if (held_bytes_ + capacity > kMaxCachedBytes) return false;
    blocks_[capacity].push_back(block);
    held_bytes_ += capacity;
    return true;
  }

  void drop_all() {
    std::lock_guard lock(mutex_);
    for (auto& [capacity, blocks] : blocks_)
      for (void* block : blocks) std::free(block);
    blocks_.clear();
    held_bytes_ = 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> blocks_;
  std::size_t held_bytes_ = 0;
};

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Large blocks come in coarse sizes, so that a freed one serves the next tensor of about its size.
std::size_t capacity_for(std::size_t bytes) {
  const std::size_t capacity = bytes + kHeaderBytes;
  if (bytes < static_cast<std::size_t>(Meter::kCachedBytes)) return capacity;
  return round_up(capacity, capacity < 2 * kHugePage ? 64 << 10 : kHugePage);
}

void* new_block(std::size_t capacity) {
  const bool huge = capacity >= 2 * kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, huge ? kHugePage : kHeaderBytes, capacity) != 0) return nullptr;
  if (huge) madvise(block, capacity, MADV_HUGEPAGE);
  return block;
}

class MeteredAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    const std::size_t capacity = capacity_for(bytes);
    const bool cached = bytes >= static_cast<std::size_t>(Meter::kCachedBytes);
    void* block = cached ? cache_.take(capacity) : nullptr;
    if (!block) block = new_block(capacity);
    if (!block) {
      cache_.drop_all();
      block = new_block(capacity);
    }
    if (!block) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes could not be had");
    }
    const int owner = owner_.load(std::memory_order_relaxed);
    new (block) Header{bytes, capacity, owner};
    charge(accounts_[owner], static_cast<int64_t>(bytes));
    void* data = static_cast<char*>(block) + kHeaderBytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  static MeteredAllocator& instance() {
    static auto* allocator = new MeteredAllocator;  // tensors may outlive every static
    return *allocator;
  }

  std::atomic<int> owner_{0};
  std::array<Account, Meter::kMaxRanks> accounts_;

 private:
  static void charge(Account& account, int64_t bytes) {
    const int64_t used = account.used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = account.peak.load(std::memory_order_relaxed);
    while (used > peak && !account.peak.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
  }

  static void release(void* data) {
    if (!data) return;
    auto& self = instance();
    void* block = static_cast<char*>(data) - kHeaderBytes;
    const Header header = *static_cast<Header*>(block);
    self.accounts_[header.owner].used.fetch_sub(static_cast<int64_t>(header.bytes),
                                                std::memory_order_relaxed);
    const bool cached = header.bytes >= static_cast<std::size_t>(Meter::kCachedBytes);
    if (!cached || !self.cache_.keep(block, header.capacity)) std::free(block);
  }

  BlockCache cache_;
};

Account& account(int rank) {
  TUTTI_ASSERT(rank >= 0 && rank < Meter::kMaxRanks, std::to_string(rank));
  return MeteredAllocator::instance().accounts_[rank];
}

}  // namespace

void Meter::install() { c10::SetCPUAllocator(&MeteredAllocator::instance(), /*priority=*/1); }

void Meter::set_owner(int rank) {
  TUTTI_ASSERT(rank >= 0 && rank < kMaxRanks, std::to_string(rank));
  MeteredAllocator::instance().owner_.store(rank, std::memory_order_relaxed);
}

int64_t Meter::used_bytes(int rank) { return account(rank).used.load(std::memory_order_relaxed); }

int64_t Meter::peak_bytes(int rank) { return account(rank).peak.load(std::memory_order_relaxed); }

void Meter::reset_peak(int rank) {
  Account& a = account(rank);
  a.peak.store(a.used.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace tutti
