#include "tests/device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

constexpr std::size_t kPinnedBytes = std::size_t{4} << 30;

std::size_t capacity_for(int device, std::size_t bytes) {
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  const std::size_t unit = device == kPinned ? 4096 : bytes <= kMebi ? 512 : kMebi;
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

std::string use(const Kernel& kernel, bool write) {
  return *kernel.name + " on " + stream_name(kernel.stream) + (write ? " writes" : " reads");
}

}  // namespace

void Memory::map() {
  device_arena.map("test device", kBytesOfADevice * kDevices, PROT_NONE);
  pinned_arena.map("test device's pinned memory", kPinnedBytes, PROT_READ | PROT_WRITE);
  for (int device = 0; device < kDevices; ++device)
    account(device).holes[device_arena.front() + kBytesOfADevice * static_cast<std::size_t>(device)] =
        kBytesOfADevice;
  account(kPinned).holes[pinned_arena.front()] = kPinnedBytes;
}

// What a graph has freed counts as allocated, since only the graph can use it.
Block& Memory::take(int device, int stream, std::size_t bytes, const Clock& known, int pool) {
  Account& one = account(device);
  const int64_t used = one.stats.allocated_bytes[0].current;
  const bool injected = ++one.asked == one.next_failure;
  const std::size_t capacity = capacity_for(device, bytes);
  const bool over = one.budget != 0 && used + static_cast<int64_t>(bytes) > one.budget;
  Block* block = injected || (over && pool == 0) ? nullptr : reuse(device, stream, capacity, known, pool);
  const bool is_counted = block && pool != 0;
  if (!block && !injected && !over) block = carve(device, stream, capacity, pool);
  if (!block) {
    ++one.stats.num_ooms;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "Test device ", device, " out of memory. Tried to allocate ",
                     bytes, " bytes; ", used, " are in use");
  }
  block->live = true;
  if (is_counted) return *block;
  block->bytes = bytes;
  one.stats.allocation[0].increase(1);
  one.stats.allocated_bytes[0].increase(bytes);
  return *block;
}

// A block that record_stream() has named is free once somebody knows those streams to be past the free.
Block* Memory::reuse(int device, int stream, std::size_t capacity, const Clock& known, int pool) {
  auto& list = cache_[{device, stream, capacity, pool}];
  for (auto one = list.rbegin(); one != list.rend(); ++one) {
    Block* const block = *one;
    if (!known.covers(block->free_after)) continue;
    std::erase_if(block->accesses,
                  [&](const Access& a) { return a.kernel <= block->free_after.at(a.stream); });
    block->free_after = {};
    list.erase(std::next(one).base());
    return block;
  }
  return nullptr;
}

// Null if the device is full.
Block* Memory::carve(int device, int stream, std::size_t capacity, int pool) {
  auto& holes = account(device).holes;
  const auto hole =
      std::find_if(holes.begin(), holes.end(), [&](const auto& one) { return one.second >= capacity; });
  if (hole == holes.end()) return nullptr;
  const auto [at, bytes] = *hole;
  holes.erase(hole);
  if (bytes > capacity) holes[at + capacity] = bytes - capacity;
  account(device).stats.reserved_bytes[0].increase(capacity);
  auto& block = blocks_[at];
  block = std::make_unique<Block>(Block{at, 0, capacity, device, stream, pool});
  return block.get();
}

void Memory::give(const void* at, const Order& order) {
  Block* const block = block_of(at);
  TORCH_CHECK(block && block->at == at && block->live, "the test device does not know this memory");
  const Clock& host = host_clock();
  std::erase_if(block->accesses, [&](const Access& a) { return a.kernel <= host.at(a.stream); });
  for (const int stream : block->used_by) block->free_after.set(stream, order.launched(stream));
  if (block->device == kPinned) {  // as CUDA's allocator, which asks events of the copies
    for (const Access& a : block->accesses)
      block->free_after.set(a.stream, std::max(a.kernel, block->free_after.at(a.stream)));
  }
  block->used_by.clear();
  block->live = false;
  if (block->pool == 0) count_free(*block);
  cache_[{block->device, block->stream, block->capacity, block->pool}].push_back(block);
}

void Memory::count_free(const Block& block) {
  auto& stats = account(block.device).stats;
  stats.allocation[0].decrease(1);
  stats.allocated_bytes[0].decrease(block.bytes);
}

void Memory::release_pool(int pool) {
  for (const auto& [at, block] : blocks_) {
    if (block->pool != pool) continue;
    block->pool = 0;
    if (!block->live) count_free(*block);
  }
  for (auto& [key, list] : cache_) {
    const auto& [device, stream, capacity, of] = key;
    if (of != pool) continue;
    auto& free = cache_[{device, stream, capacity, 0}];
    free.insert(free.end(), list.begin(), list.end());
    list.clear();
  }
}

void Memory::fill_pool(int pool, int byte) {
  for (const auto& [at, block] : blocks_)
    if (block->pool == pool) std::memset(device_arena.to_shadow(block->at), byte, block->capacity);
}

void Memory::record_stream(const void* at, int stream) {
  Block* const block = block_of(at);
  if (block && block->stream != stream) block->used_by.insert(stream);
}

void Memory::release_cached() {
  for (auto& [key, list] : cache_) {
    if (std::get<0>(key) == kPinned || std::get<3>(key) != 0) continue;
    for (Block* block : list) {
      account(block->device).stats.reserved_bytes[0].decrease(block->capacity);
      device_arena.release(block->at, block->capacity);
      add_hole(block->device, block->at, block->capacity);
      blocks_.erase(block->at);
    }
    list.clear();
  }
}

void Memory::add_hole(int device, char* at, std::size_t bytes) {
  auto& holes = account(device).holes;
  auto next = holes.lower_bound(at);
  if (next != holes.end() && next->first == at + bytes) {
    bytes += next->second;
    next = holes.erase(next);
  }
  if (next != holes.begin() && std::prev(next)->first + std::prev(next)->second == at)
    std::prev(next)->second += bytes;
  else
    holes[at] = bytes;
}

Block* Memory::block_of(const void* front) const {
  const auto next = blocks_.upper_bound(static_cast<const char*>(front));
  if (next == blocks_.begin()) return nullptr;
  Block* const block = std::prev(next)->second.get();
  return front < block->at + block->capacity ? block : nullptr;
}

void Memory::note(const Kernel& kernel, const char* begin, const char* end, bool write, int pool) {
  Block* const block = begin == end ? nullptr : block_of(begin);
  if (!block) return;
  if (!block->live && (pool == 0 || block->pool != pool)) report(use(kernel, write) + " memory that is free");
  const auto within = [&](const Access& a) { return begin <= a.begin && a.end <= end; };
  for (const Access& before : block->accesses) {
    if (before.end <= begin || end <= before.begin || (!before.write && !write)) continue;
    if (before.stream == kernel.stream || kernel.after.at(before.stream) >= before.kernel) continue;
    report(use(kernel, write) + " what " + *before.name + " on " + stream_name(before.stream) +
           (before.write ? " writes" : " reads") + ", without waiting for it");
  }
  std::erase_if(block->accesses, [&](const Access& a) {
    return within(a) && (write || (!a.write && a.stream == kernel.stream));
  });
  block->accesses.push_back({begin, end, kernel.stream, kernel.number, write, kernel.name});
}

void Memory::report(const std::string& finding) {
  if (!seen_.insert(finding).second) return;
  if (prints) std::fprintf(stderr, "test device: %s\n", finding.c_str());
  findings_.push_back(finding);
}

std::vector<std::string> Memory::take_findings() {
  seen_.clear();
  return std::exchange(findings_, {});
}

void Memory::close_pinned(const Kernel& kernel, const void* at, bool to_reads) {
  Block* const block = block_of(at);
  TORCH_CHECK(block, "the test device does not know this pinned memory");
  copies_.push_back({block, kernel.stream, kernel.number, to_reads});
  protect(*block);
}

void Memory::open_pinned(const Clock& host) {
  std::set<const Block*> open;
  std::erase_if(copies_, [&](const Copy& copy) {
    const bool over = host.at(copy.stream) >= copy.kernel;
    if (over) open.insert(copy.block);
    return over;
  });
  for (const Block* block : open) protect(*block);
}

void Memory::protect(const Block& block) const {
  int protection = PROT_READ | PROT_WRITE;
  for (const Copy& copy : copies_)
    if (copy.block == &block) protection &= copy.to_reads ? PROT_NONE : PROT_READ;
  mprotect(block.at, block.capacity, protection);
}

std::string Memory::describe(const void* front) const {
  std::ostringstream text;
  if (device_arena.in_front(front))
    text << "memory of the test device";
  else if (pinned_arena.in_front(front))
    text << "pinned memory of the test device";
  else
    return "";
  const Block* const block = block_of(front);
  if (!block) return text.str() + ", in no block";
  text << (block->live ? ", block of " : ", freed block of ") << block->bytes << " bytes";
  if (!block->accesses.empty()) {
    const Access& last = block->accesses.back();
    text << ", last used by " << *last.name << " on " << stream_name(last.stream);
  }
  return text.str();
}

}  // namespace tutti::test_device
