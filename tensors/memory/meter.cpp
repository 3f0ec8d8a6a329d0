#include "tensors/memory/meter.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/process/memory_limits.h"

namespace tutti {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr int64_t kSmallBytes = int64_t{16} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Header {
  std::size_t bytes;     // asked for
  std::size_t capacity;  // of the block, header included
  int owner;
  bool scoped;
  bool mapped;  // pages of its own
};

struct Account {
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> budget{0};
  std::atomic<int64_t> scoped{0};         // bytes allocated in scopes and not yet freed
  std::atomic<int64_t> asked{0};          // allocations in scopes
  std::atomic<int64_t> next_failure{0};   // the value of `asked` that fails; 0 = none
  std::atomic<int64_t> places{0};         // passed in scopes
  std::atomic<int64_t> failing_place{0};  // the value of `places` that fails; 0 = none
  std::mutex failures_mutex;
  std::vector<int64_t> failures;      // descending
  std::optional<c10::Device> device;  // whose memory is counted; none: the CPU

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

// Of memory that is allocated now, not of memory kept for reuse.
c10::CachingAllocator::Stat allocated_on(c10::Device device) {
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

std::atomic<void (*)(int device, int64_t bytes)> device_limit{nullptr};
std::array<std::atomic<int64_t>, Meter::kMaxRanks> outside_scopes{};  // bytes ever allocated, by device

thread_local MemoryScope* current_scope = nullptr;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Rounds large blocks to coarse sizes, so that a cached block fits tensors of similar size.
std::size_t capacity_for(std::size_t bytes) {
  const std::size_t capacity = bytes + kHeaderBytes;
  if (bytes < static_cast<std::size_t>(Meter::kCachedBytes)) return capacity;
  return round_up(capacity, capacity < 2 * kHugePage ? 64 << 10 : kHugePage);
}

bool is_cached(std::size_t bytes) { return bytes >= static_cast<std::size_t>(Meter::kCachedBytes); }

void* heap_block(std::size_t capacity) {
  const bool huge = capacity >= 2 * kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, huge ? kHugePage : kHeaderBytes, capacity) != 0) return nullptr;
  if (huge) madvise(block, capacity, MADV_HUGEPAGE);
  return block;
}

// Pages of their own, which freeing gives back to the system at once. Aligned to kHugePage if large.
void* mapped_block(std::size_t capacity) {
  const bool huge = capacity >= 2 * kHugePage;
  const std::size_t more = huge ? kHugePage : 0;
  void* all = mmap(nullptr, capacity + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (!huge) return all;
  auto* const begin = static_cast<char*>(all);
  const std::size_t skipped = (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
  if (skipped > 0) munmap(begin, skipped);
  if (skipped < more) munmap(begin + skipped + capacity, more - skipped);
  madvise(begin + skipped, capacity, MADV_HUGEPAGE);
  return begin + skipped;
}

void free_block(void* block, std::size_t capacity, bool mapped) {
  ASAN_UNPOISON_MEMORY_REGION(block, capacity);
  if (mapped)
    munmap(block, capacity);
  else
    std::free(block);
}

constexpr std::size_t kMaxCachedBytes = std::size_t{1} << 30;

// Freed large blocks, by capacity, for reuse. Poisoned for AddressSanitizer meanwhile. Thread-safe.
class BlockCache {
 public:
  struct Block {
    void* data = nullptr;
    bool mapped = false;
  };

  // A block of exactly this capacity, or null.
  Block pop(std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    const auto blocks = blocks_.find(capacity);
    if (blocks == blocks_.end() || blocks->second.empty()) return {};
    const Block block = blocks->second.back();
    blocks->second.pop_back();
    bytes_ -= capacity;
    ASAN_UNPOISON_MEMORY_REGION(block.data, capacity);
    return block;
  }

  // False if the cache is full, or if there is no memory to list the block: the caller keeps the block.
  bool push(const Block& block, std::size_t capacity) noexcept try {
    const std::lock_guard lock(mutex_);
    const Pushing pushing;
    if (bytes_ + capacity > kMaxCachedBytes) return false;
    blocks_[capacity].push_back(block);
    bytes_ += capacity;
    ASAN_POISON_MEMORY_REGION(block.data, capacity);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Frees all blocks; false if there are none. Called by operator new too, on a thread that may be in `push`.
  bool clear() {
    if (Pushing::now) return false;
    const std::lock_guard lock(mutex_);
    const bool any = bytes_ > 0;
    for (auto& [capacity, blocks] : blocks_) {
      for (const Block& block : blocks) free_block(block.data, capacity, block.mapped);
      blocks.clear();
    }
    bytes_ = 0;
    return any;
  }

 private:
  struct Pushing {
    Pushing() { now = true; }
    ~Pushing() { now = false; }
    static thread_local bool now;
  };

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<Block>> blocks_;
  std::size_t bytes_ = 0;
};

thread_local bool BlockCache::Pushing::now = false;

class MeteredAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    MemoryScope* const scope = current_scope && !current_scope->on_device() ? current_scope : nullptr;
    if (scope) scope->check(static_cast<int64_t>(bytes));
    const std::size_t capacity = capacity_for(bytes);
    const auto [block, mapped] = get_block(bytes, capacity);
    if (!block) fail(bytes);
    const int owner = owner_.load(std::memory_order_relaxed);
    new (block) Header{bytes, capacity, owner, scope != nullptr, mapped};
    accounts_[owner].add(static_cast<int64_t>(bytes));
    if (scope) accounts_[owner].scoped.fetch_add(static_cast<int64_t>(bytes));
    char* data = static_cast<char*>(block) + kHeaderBytes;
    ASAN_POISON_MEMORY_REGION(data + bytes, capacity - kHeaderBytes - bytes);
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
    if (!is_cached(header.bytes) || !self.cache_.push({block, header.mapped}, header.capacity))
      free_block(block, header.capacity, header.mapped);
  }

  // True if the cache had any blocks.
  bool give_back() {
    const bool any = cache_.clear();
    if (any || limits_) ::malloc_trim(0);
    return any;
  }

  std::atomic<int> owner_{0};
  std::array<Account, Meter::kMaxRanks> accounts_;
  std::unique_ptr<const MemoryLimits> limits_;  // null = none

 private:
  BlockCache::Block get_block(std::size_t bytes, std::size_t capacity) {
    BlockCache::Block block;
    if (is_cached(bytes)) block = cache_.pop(capacity);
    if (!block.data) block = new_block(bytes, capacity);
    if (block.data) return block;
    give_back();
    return new_block(bytes, capacity);
  }

  BlockCache::Block new_block(std::size_t bytes, std::size_t capacity) {
    if (!limits_) return {heap_block(capacity), false};
    if (!is_cached(bytes)) return {has_room(capacity) ? heap_block(capacity) : nullptr, false};
    if (!limits_->fit(static_cast<int64_t>(capacity), reserve(), MemoryLimits::Place::kMapped)) return {};
    void* block = mapped_block(capacity);
    // Memory counts towards the limit of a control group when it is first written. Now, so that the next look
    // at the limit finds it used.
    if (block && limits_->kills()) madvise(block, capacity, MADV_POPULATE_WRITE);
    return {block, true};
  }

  // Small blocks are looked at together, kSmallBytes of them at a time.
  bool has_room(std::size_t capacity) {
    const int64_t before = small_.fetch_add(static_cast<int64_t>(capacity), std::memory_order_relaxed);
    const int64_t now = before + static_cast<int64_t>(capacity);
    if (before / kSmallBytes == now / kSmallBytes && enough_) return true;
    return enough_ = limits_->fit(0, reserve(), MemoryLimits::Place::kHeap);
  }

  static int64_t reserve() { return current_scope ? 2 * Meter::kReserveBytes : Meter::kReserveBytes; }

  [[noreturn]] void fail(std::size_t bytes) const {
    const std::string limit = limits_ ? limits_->text() : "";
    if (current_scope) current_scope->note_failure(static_cast<int64_t>(bytes), 0, limit);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes could not be allocated",
                     limit.empty() ? "" : "; ", limit);
  }

  std::atomic<int64_t> small_{0};  // bytes of small blocks, ever allocated
  std::atomic<bool> enough_{true};
  BlockCache cache_;
};

Account& account(int rank) {
  TUTTI_ASSERT(rank >= 0 && rank < Meter::kMaxRanks, std::to_string(rank));
  return MeteredAllocator::instance().accounts_[rank];
}

// For operator new that finds no memory: it tries again if this returns.
void make_room() {
  if (!MeteredAllocator::instance().give_back()) throw std::bad_alloc();
}

}  // namespace

void Meter::install() {
  c10::SetCPUAllocator(&MeteredAllocator::instance(), /*priority=*/1);
  static const bool once = [] {
    std::set_new_handler(make_room);
    set_limits(std::make_unique<MemoryLimits>("/proc/self", launched_neighbours()));
    return true;
  }();
  static_cast<void>(once);
}

void Meter::set_limits(std::unique_ptr<const MemoryLimits> limits) {
  if (limits && !limits->any()) limits = nullptr;
  // glibc reserves 64 MB of addresses for each thread otherwise.
  if (limits && limits->limit_addresses()) ::mallopt(M_ARENA_MAX, 1);
  MeteredAllocator::instance().limits_ = std::move(limits);
}

std::string Meter::limit() {
  const auto& limits = MeteredAllocator::instance().limits_;
  return limits ? limits->text() : "";
}

bool Meter::fits(int64_t bytes) {
  const auto& limits = MeteredAllocator::instance().limits_;
  return !limits || limits->fit(bytes, kReserveBytes, MemoryLimits::Place::kMapped);
}

void Meter::give_back() { MeteredAllocator::instance().give_back(); }

void Meter::empty_device_cache(int rank) {
  if (const auto& device = account(rank).device) at::getDeviceAllocator(device->type())->emptyCache();
}

void Meter::set_owner(int rank) {
  TUTTI_ASSERT(rank >= 0 && rank < kMaxRanks, std::to_string(rank));
  MeteredAllocator::instance().owner_.store(rank, std::memory_order_relaxed);
}

int64_t Meter::used_bytes(int rank) {
  const Account& a = account(rank);
  return a.device ? allocated_on(*a.device).current : a.used.load(std::memory_order_relaxed);
}

int64_t Meter::peak_bytes(int rank) {
  const Account& a = account(rank);
  return a.device ? allocated_on(*a.device).peak : a.peak.load(std::memory_order_relaxed);
}

void Meter::reset_peak(int rank) {
  Account& a = account(rank);
  if (a.device) return at::getDeviceAllocator(a.device->type())->resetPeakStats(a.device->index());
  a.peak.store(a.used.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void Meter::set_budget(int rank, int64_t bytes) {
  const Account& mine = account(rank);
  account(rank).budget = bytes;
  if (mine.device && device_limit) device_limit.load()(mine.device->index(), bytes);
}

int64_t Meter::budget(int rank) { return account(rank).budget; }

void Meter::count_device(int rank, c10::Device device) {
  account(rank).device = device.is_cpu() ? std::nullopt : std::optional(device);
}

void Meter::limit_devices_by(void (*limit)(int device, int64_t bytes)) { device_limit = limit; }

void Meter::before_device_allocation(int device, std::size_t bytes) {
  if (current_scope && current_scope->on_device())
    current_scope->check(static_cast<int64_t>(bytes));
  else
    outside_scopes.at(static_cast<std::size_t>(device)) += static_cast<int64_t>(bytes);
}

bool Meter::counts(const at::Tensor& tensor) {
  return tensor.storage().data_ptr().get_deleter() == &MeteredAllocator::release;
}

void Meter::charge(int rank, int64_t bytes) { account(rank).add(bytes); }

int64_t Meter::scoped_bytes(int rank) {
  return account(rank).device ? used_bytes(rank) : account(rank).scoped.load();
}

int64_t Meter::held_by_scopes(int rank) {
  const auto& device = account(rank).device;
  if (!device) return scoped_bytes(rank);
  if (device_limit) return 0;
  return used_bytes(rank) - outside_scopes.at(static_cast<std::size_t>(device->index()));
}

int64_t Meter::scoped_allocations(int rank) { return account(rank).asked; }

void Meter::fail_at(int rank, const std::vector<int64_t>& ordinals) {
  const int64_t now = account(rank).asked;
  std::vector<int64_t> absolute;
  for (auto ordinal = ordinals.rbegin(); ordinal != ordinals.rend(); ++ordinal)
    absolute.push_back(now + *ordinal);
  account(rank).set_failures(std::move(absolute));
}

int64_t Meter::failures_left(int rank) { return account(rank).failures_left(); }

void Meter::fail_at_place(int rank, int64_t place) {
  account(rank).failing_place = place > 0 ? account(rank).places + place : 0;
}

MemoryScope::MemoryScope(int rank) : rank_(rank), outer_(std::exchange(current_scope, this)) {
  TUTTI_ASSERT(rank >= 0 && rank < Meter::kMaxRanks, std::to_string(rank));
  first_ = account(rank).asked;
  first_place_ = account(rank).places;
  on_device_ = account(rank).device.has_value();
}

MemoryScope::~MemoryScope() { current_scope = outer_; }

void MemoryScope::check(int64_t bytes) {
  Account& mine = account(rank_);
  const int64_t ordinal = mine.asked.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t budget = mine.budget.load(std::memory_order_relaxed);
  const int64_t used = budget == 0 ? 0 : Meter::used_bytes(rank_);
  const bool injected = ordinal == mine.next_failure.load(std::memory_order_relaxed);
  if (injected) mine.pop_failure();
  if (!injected && (budget == 0 || used + bytes <= budget)) return;
  note_failure(bytes, budget);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes asked, ", used, " in use, of ",
                   budget, " allowed");
}

int64_t MemoryScope::places() const { return account(rank_).places - first_place_; }

void MemoryScope::pass_place() {
  if (!current_scope) return;
  Account& mine = account(current_scope->rank_);
  if (++mine.places == mine.failing_place) Meter::fail_at(current_scope->rank_, {1});
}

void MemoryScope::note_failure(int64_t bytes, int64_t budget, const std::string& limit) {
  const Account& mine = account(rank_);
  failure_ = {bytes, Meter::used_bytes(rank_), budget, mine.asked - first_, places(), limit};
}

MemoryScopePause::MemoryScopePause() : paused_(std::exchange(current_scope, nullptr)) {}

MemoryScopePause::~MemoryScopePause() { current_scope = paused_; }

}  // namespace tutti
