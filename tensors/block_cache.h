#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tutti {

// Freed large blocks by capacity, to be handed out again. Bounded, so that a model whose shapes vary does not
// hoard. Thread-safe.
class BlockCache {
 public:
  // A block of just this capacity, or null.
  void* take(std::size_t capacity);
  // False where there is no room for it: it stays the caller's.
  bool keep(void* block, std::size_t capacity);
  void drop_all();

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> blocks_;
  std::size_t held_bytes_ = 0;
};

}  // namespace tutti
