#include "collectives/mpi/operation.h"

#include <algorithm>
#include <cstring>

#include "collectives/header_log.h"
#include "collectives/ordered_sum.h"

namespace tutti {

Operation::Operation(CollectiveJob job) : job_(std::move(job)) {
  if (job_.whole.defined()) {
    item_bytes_ = static_cast<int64_t>(job_.whole.element_size());
    whole_ = static_cast<std::byte*>(job_.whole.data_ptr());
  }
  if (job_.part.defined()) {
    item_bytes_ = static_cast<int64_t>(job_.part.element_size());
    part_ = static_cast<std::byte*>(job_.part.data_ptr());
  }
}

std::vector<CutRun> Operation::runs(int rank, int64_t first, int64_t bytes) const {
  if (!job_.cut) return {{first, 0, bytes}};
  std::vector<CutRun> runs = cut().runs(rank, first / item_bytes_, bytes / item_bytes_);
  for (CutRun& run : runs) run = {run.whole * item_bytes_, run.part * item_bytes_, run.count * item_bytes_};
  return runs;
}

std::vector<CutRun> Operation::own_runs(int rank, int64_t first, int64_t bytes) const {
  return in_place() ? runs(rank, first, bytes) : std::vector<CutRun>{{first, 0, bytes}};
}

void Operation::pack(int rank, int64_t first, int64_t bytes, std::byte* to) const {
  for (const CutRun& run : runs(rank, first, bytes))
    std::memcpy(to + run.part, whole_ + run.whole, run.count);
}

void Operation::unpack(int rank, int64_t first, int64_t bytes, const std::byte* from) const {
  for (const CutRun& run : runs(rank, first, bytes)) {
    const bool is_there = from + run.part == whole_ + run.whole;
    if (!is_there) std::memcpy(whole_ + run.whole, from + run.part, run.count);
  }
}

SlotOperation::SlotOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : Operation(std::move(job)),
      endpoint_(endpoint),
      sequence_(header().sequence),
      agreed_(endpoint.locals(), false) {}

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
    if (!agreed_[local]) late.push_back(endpoint_.world_rank(endpoint_.layout().neighbours()[local]));
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

// The input of a reduce_scatter is packed, rank by rank.
void InlineOperation::prepare(ControlSlot& slot) {
  const int self = endpoint().layout().rank();
  switch (header().kind) {
    case CollectiveKind::kReduceScatter:
      for (int rank = 0; rank < cut().ranks(); ++rank)
        pack(rank, 0, cut().part_size(rank) * item_bytes(),
             slot.data + cut().packed_begin(rank) * item_bytes());
      return;
    case CollectiveKind::kBroadcast:
      if (self != job().root) return;
      [[fallthrough]];
    default:
      if (in_place())
        pack(self, 0, cut().part_size(self) * item_bytes(), slot.data);
      else if (source().defined() && source().numel() > 0)
        std::memcpy(slot.data, source().const_data_ptr(), source().nbytes());
  }
}

void InlineOperation::compute_result() {
  if (header().bytes == 0) return;
  const HostLayout& layout = endpoint().layout();
  switch (header().kind) {
    case CollectiveKind::kAllReduce:
      return sum(0, whole_bytes(), whole());
    case CollectiveKind::kReduceScatter:
      return scatter(layout.rank());
    case CollectiveKind::kAllGather:
      for (int rank = 0; whole() && rank < layout.size(); ++rank)
        unpack(rank, 0, cut().part_size(rank) * item_bytes(), slot(rank).data);
      return;
    case CollectiveKind::kBroadcast:
      return unpack(job().root, 0, whole_bytes(), slot(job().root).data);
    case CollectiveKind::kBarrier:
      return;
  }
}

void InlineOperation::scatter(int rank) {
  const int64_t begin = cut().packed_begin(rank) * item_bytes();
  if (!part()) return;
  for (const CutRun& run : own_runs(rank, 0, cut().part_size(rank) * item_bytes()))
    sum(begin + run.part, run.count, part() + run.whole);
}

void InlineOperation::sum(int64_t first, int64_t bytes, std::byte* out) {
  std::vector<Summand> summands;
  for (int local = 0; local < endpoint().locals(); ++local)
    summands.push_back({{local, local + 1}, slot(local).data + first});
  void* const output = out;
  note_finite(ordered_sum(job().whole.scalar_type(), summands, {&output, 1}, bytes / item_bytes()));
}

}  // namespace tutti
