#include "tensors/meter.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Header {
  std::size_t bytes;     // asked for
  std::size_t capacity;  // of the block, header included
  int owner;
  bool scoped;
};

struct Account {
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> budget{0};
  std::atomic<int64_t> scoped{0};        // bytes allocated in scopes and not yet freed
  std::atomic<int64_t> asked{0};         // allocations in scopes
  std::atomic<int64_t> next_failure{0};  // the value of `asked` that fails; 0 = none
  std::mutex failures_mutex;
  std::vector<int64_t> failures;  // descending

  void add(int64_t bytes) {
    const int64_t now = used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
  void set_failures(std::vector<int64_t> ordinals) {
    std::lock_guard lock(failures_mutex);
    failures = std::move(ordinals);
    next_failure = failures.empty() ? 0 : failures.back();
  }
  int64_t failures_left() {
    std::lock_guard lock(failures_mutex);
    return std::ssize(failures);
  }
  void pop_failure() {
    std::lock_guard lock(failures_mutex);
    if (!failures.empty()) failures.pop_back();
    next_failure = failures.empty() ? 0 : failures.back();
  }
};

thread_local MemoryScope* current_scope = nullptr;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Rounds large blocks to coarse sizes, so that a cached block fits tensors of similar size.
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

constexpr std::size_t kMaxCachedBytes = std::size_t{1} << 30;

// Freed large blocks, by capacity, for reuse. Thread-safe.
class BlockCache {
 public:
  // A block of exactly this capacity, or null.
  void* pop(std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(capacity);
    if (found == blocks_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    bytes_ -= capacity;
    return block;
  }

  // False if the cache is full: the caller keeps the block.
  bool push(void* block, std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + capacity > kMaxCachedBytes) return false;
    blocks_[capacity].push_back(block);
    bytes_ += capacity;
    return true;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    for (const auto& [capacity, blocks] : blocks_)
      for (void* block : blocks) std::free(block);
    blocks_.clear();
    bytes_ = 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> blocks_;
  std::size_t bytes_ = 0;
};

class MeteredAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    if (current_scope) current_scope->check(static_cast<int64_t>(bytes));
    const std::size_t capacity = capacity_for(bytes);
    void* block = get_block(bytes, capacity);
    if (!block) fail(bytes);
    const int owner = owner_.load(std::memory_order_relaxed);
    new (block) Header{bytes, capacity, owner, current_scope != nullptr};
    accounts_[owner].add(static_cast<int64_t>(bytes));
    if (current_scope) accounts_[owner].scoped.fetch_add(static_cast<int64_t>(bytes));
    void* data = static_cast<char*>(block) + kHeaderBytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  static MeteredAllocator& instance() {
    static auto* allocator = new MeteredAllocator;  // never destroyed: tensors may outlive all statics
    return *allocator;
  }

  static void release(void* data) {
    if (!data) return;
    auto& self = instance();
    void* block = static_cast<char*>(data) - kHeaderBytes;
    const Header header = *static_cast<Header*>(block);
    const auto bytes = static_cast<int64_t>(header.bytes);
    self.accounts_[header.owner].used.fetch_sub(bytes, std::memory_order_relaxed);
    if (header.scoped) self.accounts_[header.owner].scoped.fetch_sub(bytes);
    const bool cached = header.bytes >= static_cast<std::size_t>(Meter::kCachedBytes);
    if (!cached || !self.cache_.push(block, header.capacity)) std::free(block);
  }

  std::atomic<int> owner_{0};
  std::array<Account, Meter::kMaxRanks> accounts_;

 private:
  void* get_block(std::size_t bytes, std::size_t capacity) {
    const bool cached = bytes >= static_cast<std::size_t>(Meter::kCachedBytes);
    void* block = cached ? cache_.pop(capacity) : nullptr;
    if (!block) block = new_block(capacity);
    if (block) return block;
    cache_.clear();
    return new_block(capacity);
  }

  [[noreturn]] static void fail(std::size_t bytes) {
    if (current_scope) current_scope->note_failure(static_cast<int64_t>(bytes), 0);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes could not be allocated");
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

void Meter::set_budget(int rank, int64_t bytes) { account(rank).budget = bytes; }

int64_t Meter::budget(int rank) { return account(rank).budget; }

bool Meter::counts(const at::Tensor& tensor) {
  return tensor.storage().data_ptr().get_deleter() == &MeteredAllocator::release;
}

void Meter::charge(int rank, int64_t bytes) { account(rank).add(bytes); }

int64_t Meter::scoped_bytes(int rank) { return account(rank).scoped; }

int64_t Meter::scoped_allocations(int rank) { return account(rank).asked; }

void Meter::fail_at(int rank, const std::vector<int64_t>& ordinals) {
  const int64_t now = account(rank).asked;
  std::vector<int64_t> absolute;
  for (auto one = ordinals.rbegin(); one != ordinals.rend(); ++one) absolute.push_back(now + *one);
  account(rank).set_failures(std::move(absolute));
}

int64_t Meter::failures_left(int rank) { return account(rank).failures_left(); }

MemoryScope::MemoryScope(int rank) : rank_(rank), outer_(std::exchange(current_scope, this)) {
  TUTTI_ASSERT(rank >= 0 && rank < Meter::kMaxRanks, std::to_string(rank));
  first_ = account(rank).asked;
}

MemoryScope::~MemoryScope() { current_scope = outer_; }

void MemoryScope::check(int64_t bytes) {
  Account& mine = account(rank_);
  const int64_t ordinal = mine.asked.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t budget = mine.budget.load(std::memory_order_relaxed);
  const int64_t used = mine.used.load(std::memory_order_relaxed);
  const bool injected = ordinal == mine.next_failure.load(std::memory_order_relaxed);
  if (injected) mine.pop_failure();
  if (!injected && (budget == 0 || used + bytes <= budget)) return;
  note_failure(bytes, budget);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes asked, ", used, " in use, of ",
                   budget, " allowed");
}

void MemoryScope::note_failure(int64_t bytes, int64_t budget) {
  const Account& mine = account(rank_);
  failure_ = {bytes, mine.used, budget, mine.asked - first_};
}

MemoryScopePause::MemoryScopePause() : paused_(std::exchange(current_scope, nullptr)) {}

MemoryScopePause::~MemoryScopePause() { current_scope = paused_; }

}  // namespace tutti
