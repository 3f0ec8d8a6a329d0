#include "collectives/mpi/operation.h"

#include <algorithm>
#include <cstring>

#include "collectives/header_log.h"
#include "collectives/ordered_sum.h"

namespace tutti {

SlotOperation::SlotOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : Operation(std::move(job)),
      endpoint_(endpoint),
      sequence_(header().sequence),
      agreed_(endpoint.locals(), false) {
  const CollectiveJob& asked = this->job();
  if (asked.whole.defined()) {
    item_bytes_ = static_cast<int64_t>(asked.whole.element_size());
    whole_bytes_ = static_cast<int64_t>(asked.whole.nbytes());
    whole_ = static_cast<std::byte*>(asked.whole.data_ptr());
  }
  if (asked.part.defined()) part_ = static_cast<std::byte*>(asked.part.data_ptr());
}

std::byte* SlotOperation::source() const {
  return header().kind == CollectiveKind::kAllGather ? part_ : whole_;
}

bool SlotOperation::slot_is_free() const {
  if (sequence_ < ControlWindow::kSlots) return true;
  for (int local = 0; local < endpoint_.locals(); ++local) {
    if (slot(local).left.get() <= sequence_ - ControlWindow::kSlots) return false;
  }
  return true;
}

void SlotOperation::post() {
  ControlSlot& mine = own_slot();
  mine.header = header();
  mine.filled.set(0);
  mine.settled.set(0);
  mine.drained.set(0);
  mine.finite = true;
  mine.window = ControlSlot::kNoWindow;
  prepare(mine);
  mine.posted.set(sequence_ + 1);
  posted_ = true;
}

bool SlotOperation::everyone_posted() {
  if (!posted_) {
    if (!slot_is_free()) return false;
    post();
  }
  for (int local = 0; local < endpoint_.locals(); ++local) {
    if (agreed_[local] || slot(local).posted.get() <= sequence_) continue;
    compare(local);
    agreed_[local] = true;
    ++agreed_count_;
  }
  return agreed_count_ == endpoint_.locals();
}

std::vector<int> SlotOperation::late() const {
  std::vector<int> late;
  for (int local = 0; local < endpoint_.locals(); ++local)
    if (!agreed_[local]) late.push_back(endpoint_.layout().neighbours()[local]);
  return late;
}

void SlotOperation::compare(int local) const {
  const CollectiveHeader& theirs = slot(local).header;
  if (matches(theirs, header())) return;
  const HostLayout& layout = endpoint_.layout();
  const int neighbour = layout.neighbours()[local];
  throw CollectiveError(
      mismatch_text(endpoint_.world_rank(layout.rank()), header(), endpoint_.world_rank(neighbour), theirs));
}

void SlotOperation::leave() {
  own_slot().left.set(sequence_ + 1);
  finish();
}

uint64_t SlotOperation::least(SharedCount ControlSlot::*count) const {
  uint64_t value = UINT64_MAX;
  for (int local = 0; local < endpoint_.locals(); ++local)
    value = std::min(value, (slot(local).*count).get());
  return value;
}

bool InlineOperation::advance() {
  if (!everyone_posted()) return false;
  compute_result();
  leave();
  return true;
}

void InlineOperation::prepare(ControlSlot& slot) {
  const HostLayout& layout = endpoint().layout();
  auto bytes = static_cast<int64_t>(header().bytes);
  if (header().kind == CollectiveKind::kAllGather) bytes /= layout.size();
  if (header().kind == CollectiveKind::kBroadcast && layout.rank() != job().root) return;
  if (bytes > 0) std::memcpy(slot.data, source(), bytes);
}

void InlineOperation::compute_result() {
  if (header().bytes == 0) return;
  const HostLayout& layout = endpoint().layout();
  const auto bytes = static_cast<int64_t>(header().bytes);
  const int64_t count = bytes / item_bytes();
  const int64_t chunk = count / layout.size();
  switch (header().kind) {
    case CollectiveKind::kAllReduce:
      return sum(0, count, whole());
    case CollectiveKind::kReduceScatter:
      return sum(layout.rank() * chunk, chunk, part());
    case CollectiveKind::kAllGather:
      return gather();
    case CollectiveKind::kBroadcast:
      std::memcpy(whole(), slot(layout.local_of(job().root)).data, bytes);
      return;
    case CollectiveKind::kBarrier:
      return;
  }
}

void InlineOperation::sum(int64_t first, int64_t count, std::byte* out) {
  std::vector<Summand> summands;
  for (int local = 0; local < endpoint().locals(); ++local) {
    summands.push_back({{local, local + 1}, slot(local).data + first * item_bytes()});
  }
  void* const output = out;
  note_finite(ordered_sum(job().whole.scalar_type(), summands, {&output, 1}, count));
}

void InlineOperation::gather() {
  const int64_t bytes = static_cast<int64_t>(header().bytes) / endpoint().layout().size();
  for (int local = 0; local < endpoint().locals(); ++local) {
    std::memcpy(whole() + local * bytes, slot(local).data, bytes);
  }
}

}  // namespace tutti
