#include "tensors/block_cache.h"

#include <cstdlib>

namespace tutti {
namespace {

constexpr std::size_t kMaxHeldBytes = std::size_t{1} << 30;

}  // namespace

void* BlockCache::take(std::size_t capacity) {
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(capacity);
  if (found == blocks_.end() || found->second.empty()) return nullptr;
  void* block = found->second.back();
  found->second.pop_back();
  held_bytes_ -= capacity;
  return block;
}

bool BlockCache::keep(void* block, std::size_t capacity) {
  std::lock_guard lock(mutex_);
  if (held_bytes_ + capacity > kMaxHeldBytes) return false;
  blocks_[capacity].push_back(block);
  held_bytes_ += capacity;
  return true;
}

void BlockCache::drop_all() {
  std::lock_guard lock(mutex_);
  for (auto& [capacity, blocks] : blocks_)
    for (void* block : blocks) std::free(block);
  blocks_.clear();
  held_bytes_ = 0;
}

}  // namespace tutti
