#include "actors/checkpoint_copies.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr int64_t kAlignment = 64;  // of parts in the ring
constexpr int64_t kParts = 8;       // at least as many parts fit into the ring, so that copies overlap

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
  const int64_t ring = std::min(most_ring_bytes_, std::max(kParts * kAlignment, passing));
  ring_ = staging_memory({ring / kAlignment * kAlignment}, at::kByte, device_);
  return bytes + static_cast<int64_t>(ring_.nbytes());
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
  if (!device_.is_cpu() && !ring_.defined()) reserve(pieces);
  for (CheckpointPiece& piece : pieces) {
    at::Tensor& copy = copy_of(piece);
    if (piece.tensor.is_cpu())
      copy.copy_(piece.tensor);
    else
      pass(piece.tensor.contiguous().view(-1), copy.view(-1));
    piece.tensor = copy;
  }
  return StreamOrder::record(device_);
}

void CheckpointCopies::finish() {
  while (!passing_.empty()) take_oldest();
}

void CheckpointCopies::pass(const at::Tensor& from, const at::Tensor& to) {
  const int64_t item = from.element_size(), most = ring_.numel() / kParts / kAlignment * kAlignment / item;
  for (int64_t done = 0; done < from.numel(); done += most) {
    const int64_t count = std::min(most, from.numel() - done), bytes = count * item;
    const int64_t begin = make_room(bytes);
    const at::Tensor pinned = ring_.narrow(0, begin, bytes).view(from.scalar_type());
    pinned.copy_(from.narrow(0, done, count), /*non_blocking=*/true);
    passing_.push_back(
        {pinned, to.narrow(0, done, count), begin, begin + aligned(bytes), StreamOrder::record(device_)});
  }
}

// Where in the ring so many bytes are free, behind the newest part.
int64_t CheckpointCopies::make_room(int64_t bytes) {
  int64_t begin = passing_.empty() ? 0 : passing_.back().end;
  if (begin + bytes > ring_.numel()) begin = 0;
  const auto overlaps = [&](const Passing& part) { return part.begin < begin + bytes && begin < part.end; };
  while (std::ranges::any_of(passing_, overlaps)) take_oldest();
  return begin;
}

void CheckpointCopies::take_oldest() {
  const Passing& oldest = passing_.front();
  oldest.copied.synchronize();
  at::Tensor(oldest.to).copy_(oldest.pinned);
  passing_.pop_front();
}

}  // namespace tutti
