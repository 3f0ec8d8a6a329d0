#include "actors/checkpoint_copies.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr int64_t kAlignment = 64;  // of parts in a slot
constexpr int64_t kSlots = 8;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

int64_t CheckpointCopies::reserve(const std::vector<CheckpointPiece>& pieces) {
  int64_t bytes = 0, passing = 0;
  for (const CheckpointPiece& piece : pieces) {
    const auto size = static_cast<int64_t>(copy_of(piece).nbytes());
    bytes += size;
    passing += aligned(size);
  }
  if (device_.is_cpu()) return bytes;
  // What fits leaves a slot free: nobody waits for it.
  const int64_t slot =
      aligned(std::max<int64_t>(1, std::min(most_ring_bytes_ / kSlots, passing / (kSlots - 1) + 1)));
  ring_.clear();
  for (int64_t i = 0; i < kSlots; ++i)
    ring_.push_back({.pinned = staging_memory({slot}, at::kByte, device_)});
  return bytes + kSlots * slot;
}

void CheckpointCopies::touch() {
  for (auto& [name, copy] : copies_) copy.zero_();
}

// The memory for a copy of the piece, allocated again if a listener has changed the shape.
at::Tensor& CheckpointCopies::copy_of(const CheckpointPiece& piece) {
  at::Tensor& copy = copies_[piece.name];
  if (!copy.defined() || copy.sizes() != piece.tensor.sizes() || copy.dtype() != piece.tensor.dtype())
    copy = at::empty(piece.tensor.sizes(), piece.tensor.scalar_type());
  return copy;
}

StreamOrder CheckpointCopies::copy(std::vector<CheckpointPiece>& pieces) {
  if (!device_.is_cpu() && ring_.empty()) reserve(pieces);
  for (CheckpointPiece& piece : pieces) {
    at::Tensor& copy = copy_of(piece);
    if (piece.tensor.is_cpu())
      copy.copy_(piece.tensor);
    else
      pass(piece.tensor.contiguous().view(-1), copy.view(-1));
    piece.tensor = copy;
  }
  if (!ring_.empty()) next_slot();
  return StreamOrder::record(device_);
}

void CheckpointCopies::finish() {
  for (std::size_t i = 0; i < ring_.size(); ++i) empty(ring_[(filling_ + i) % ring_.size()]);
}

void CheckpointCopies::pass(const at::Tensor& from, const at::Tensor& to) {
  const int64_t item = from.element_size();
  for (int64_t done = 0; done < from.numel();) {
    Slot& slot = ring_[filling_];
    const int64_t room = (slot.pinned.numel() - slot.used) / item;
    if (room == 0) {
      next_slot();
      continue;
    }
    const int64_t count = std::min(room, from.numel() - done);
    const at::Tensor pinned = slot.pinned.narrow(0, slot.used, count * item).view(from.scalar_type());
    pinned.copy_(from.narrow(0, done, count), /*non_blocking=*/true);
    slot.parts.push_back({pinned, to.narrow(0, done, count)});
    slot.used = std::min(slot.pinned.numel(), slot.used + aligned(count * item));
    done += count;
  }
}

// The slot is read from the device. The next one, the oldest, becomes free.
void CheckpointCopies::next_slot() {
  ring_[filling_].filled = StreamOrder::record(device_);
  filling_ = (filling_ + 1) % ring_.size();
  empty(ring_[filling_]);
}

void CheckpointCopies::empty(Slot& slot) {
  slot.filled.synchronize();
  for (const Slot::Part& part : slot.parts) at::Tensor(part.to).copy_(part.from);
  slot = {.pinned = slot.pinned};
}

}  // namespace tutti
