#include "data/arrays/hdf5_rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr size_t kLeastBlockBytes = size_t{1} << 16;  // small chunks are kept together

// The largest size_t if it is larger: headers may promise any size.
size_t product(size_t bytes, int64_t count) {
  size_t all = 0;
  return __builtin_mul_overflow(bytes, static_cast<size_t>(count), &all) ? SIZE_MAX : all;
}

void copy_row(const std::byte* rows, int64_t row, size_t bytes, std::byte* to) {
  std::memcpy(to, rows + static_cast<size_t>(row) * bytes, bytes);
}

void require_row(const Hdf5Entry& entry, int64_t row) {
  TUTTI_ASSERT(row >= 0 && row < entry.shape[0], entry.path + ": row " + std::to_string(row));
}

// Rows [block * block_rows, ...) of a file, the last ones of which may be fewer.
struct Blocks {
  std::shared_ptr<const Hdf5File> file;
  Hdf5Entry entry;
  size_t row_bytes = 0;
  int64_t block_rows = 1;

  int64_t count() const { return (entry.shape[0] + block_rows - 1) / block_rows; }
  int64_t first(int64_t block) const { return block * block_rows; }
  int64_t rows(int64_t block) const { return std::min(block_rows, entry.shape[0] - first(block)); }
  size_t bytes(int64_t block) const { return static_cast<size_t>(rows(block)) * row_bytes; }
  at::Tensor memory(size_t size) const try {
    return at::empty({static_cast<int64_t>(size)}, at::kByte);
  } catch (const c10::Error& error) {
    throw_run_error(error, file->path() + ": dataset '" + entry.path + "' cannot be read: ");
  }
  void read(int64_t block, std::byte* to) const {
    file->read_rows_into(entry.path, first(block), rows(block), to);
  }
};

Blocks blocks_of(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry, int64_t chunks) {
  return {std::move(file), entry, row_bytes(entry.shape, entry.dtype), chunks * rows_of_chunk(entry)};
}

// All rows lie in one piece of memory, as in a mapped file.
class KeptRows final : public ArrayRows {
 public:
  explicit KeptRows(Blocks blocks)
      : blocks_(std::move(blocks)),
        states_(static_cast<size_t>(blocks_.count())),
        memory_(blocks_.memory(all_bytes(blocks_.entry))),
        rows_(static_cast<std::byte*>(memory_.mutable_data_ptr())) {}

  void gather(std::span<const int64_t> rows, std::byte* to) const override {
    for (const int64_t row : rows) {
      require_row(blocks_.entry, row);
      require(row / blocks_.block_rows);
      copy_row(rows_, row, blocks_.row_bytes, to);
      to += blocks_.row_bytes;
    }
  }

 private:
  enum State : int { kAbsent, kBeingRead, kThere };

  void require(int64_t block) const {
    std::atomic<int>& state = states_[static_cast<size_t>(block)];
    for (int seen = state.load(std::memory_order_acquire); seen != kThere;) {
      if (seen == kBeingRead) {
        state.wait(kBeingRead, std::memory_order_acquire);
        seen = state.load(std::memory_order_acquire);
      } else if (state.compare_exchange_strong(seen, kBeingRead)) {
        read(block, state);
        return;
      }
    }
  }

  void read(int64_t block, std::atomic<int>& state) const {
    const auto publish = [&](State reached) {
      state.store(reached, std::memory_order_release);
      state.notify_all();
    };
    try {
      blocks_.read(block, rows_ + static_cast<size_t>(blocks_.first(block)) * blocks_.row_bytes);
    } catch (...) {
      publish(kAbsent);  // other threads find the error, too
      throw;
    }
    publish(kThere);
  }

  Blocks blocks_;
  mutable std::vector<std::atomic<int>> states_;
  at::Tensor memory_;
  std::byte* rows_;
};

class RecentRows final : public ArrayRows {
 public:
  RecentRows(Blocks blocks, size_t most_bytes) : blocks_(std::move(blocks)), most_bytes_(most_bytes) {}

  void gather(std::span<const int64_t> rows, std::byte* to) const override {
    std::vector<size_t> by_block(rows.size());
    std::iota(by_block.begin(), by_block.end(), size_t{0});
    std::ranges::stable_sort(by_block, {}, [&](size_t i) { return rows[i] / blocks_.block_rows; });
    at::Tensor block;
    int64_t held = -1;
    for (const size_t i : by_block) {
      require_row(blocks_.entry, rows[i]);
      const int64_t number = rows[i] / blocks_.block_rows;
      if (std::exchange(held, number) != number) block = block_at(number);
      copy_row(static_cast<const std::byte*>(block.const_data_ptr()), rows[i] - blocks_.first(number),
               blocks_.row_bytes, to + i * blocks_.row_bytes);
    }
  }

 private:
  using Recent = std::list<std::pair<int64_t, at::Tensor>>;  // the last one first

  // Two threads may decode one block at a time; neither waits for the other.
  at::Tensor block_at(int64_t block) const {
    if (at::Tensor known = find(block); known.defined()) return known;
    const at::Tensor read = blocks_.memory(blocks_.bytes(block));
    blocks_.read(block, static_cast<std::byte*>(read.mutable_data_ptr()));
    keep(block, read);
    return read;
  }

  at::Tensor find(int64_t block) const {
    const std::scoped_lock lock(mutex_);
    const auto place = places_.find(block);
    if (place == places_.end()) return {};
    recent_.splice(recent_.begin(), recent_, place->second);
    return place->second->second;
  }

  void keep(int64_t block, const at::Tensor& read) const {
    const std::scoped_lock lock(mutex_);
    if (places_.contains(block)) return;
    recent_.emplace_front(block, read);
    places_[block] = recent_.begin();
    bytes_ += read.nbytes();
    while (bytes_ > most_bytes_ && recent_.size() > 1) {
      bytes_ -= recent_.back().second.nbytes();
      places_.erase(recent_.back().first);
      recent_.pop_back();
    }
  }

  Blocks blocks_;
  size_t most_bytes_;
  mutable std::mutex mutex_;
  mutable Recent recent_;
  mutable std::unordered_map<int64_t, Recent::iterator> places_;
  mutable size_t bytes_ = 0;
};

}  // namespace

size_t all_bytes(const Hdf5Entry& entry) {
  return product(row_bytes(entry.shape, entry.dtype), entry.shape[0]);
}

int64_t rows_of_chunk(const Hdf5Entry& entry) {
  const int64_t rows = entry.storage.chunk.empty() ? 1 : std::min(entry.storage.chunk[0], entry.shape[0]);
  return std::max<int64_t>(rows, 1);
}

ArrayRowsPtr kept_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry) {
  const size_t chunk = row_bytes(entry.shape, entry.dtype) * static_cast<size_t>(rows_of_chunk(entry));
  const auto chunks = static_cast<int64_t>((kLeastBlockBytes + chunk - 1) / chunk);
  return std::make_unique<const KeptRows>(blocks_of(std::move(file), entry, chunks));
}

ArrayRowsPtr recent_rows(std::shared_ptr<const Hdf5File> file, const Hdf5Entry& entry, size_t most_bytes) {
  return std::make_unique<const RecentRows>(blocks_of(std::move(file), entry, 1), most_bytes);
}

}  // namespace tutti
