#include "collectives/mpi/pieced_operation.h"

#include <algorithm>

#include "collectives/header_log.h"

namespace tutti {

PiecedOperation::PiecedOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : SlotOperation(endpoint, std::move(job)) {
  if (!is_small()) endpoint.queue_for_scratch(sequence());
}

void PiecedOperation::set_pieces_of_parts() {
  const int64_t largest = cut().largest_part() * item_bytes();
  step_bytes_ = std::clamp<int64_t>(largest, 1, endpoint().chunk_bytes());
  set_pieces((largest + step_bytes_ - 1) / step_bytes_);
}

// A small collective is one piece, and its parts are packed in the slot.
PiecedOperation::Chunk PiecedOperation::chunk_of_part(int64_t piece, int rank) const {
  const int64_t first = piece * step_bytes_;
  const int64_t left = cut().part_size(rank) * item_bytes() - first;
  const int64_t in_scratch = is_small() ? cut().packed_begin(rank) * item_bytes() : rank * step_bytes_;
  return {first, std::clamp<int64_t>(left, 0, step_bytes_), in_scratch};
}

// An empty tensor has no data, but is in the window of its storage.
void PiecedOperation::prepare(ControlSlot& slot) {
  if (is_small() || !can_be_direct()) return;
  const void* const data =
      static_cast<const std::byte*>(source().storage().data()) + source().storage_offset() * item_bytes();
  const auto number = endpoint().window_of(data, static_cast<int64_t>(source().nbytes()));
  if (!number) return;
  window_ = endpoint().window(*number);
  slot.window = *number;
  slot.offset = window_->offset(data);
  slot.in_place = in_place();
}

// Chooses direct mode if the data of all ranks of this host is in one window. Else scratch is used, after the
// collectives before this one.
bool PiecedOperation::decide() {
  if (decided_) return true;
  direct_ = window_ != nullptr;
  for (int local = 0; local < endpoint().locals(); ++local)
    direct_ &= slot(local).window == own_slot().window;
  if (is_small()) return decided_ = true;
  if (direct_) {
    endpoint().release_scratch(sequence(), false);
    return decided_ = true;
  }
  return decided_ = endpoint().may_use_scratch(sequence());
}

std::byte* PiecedOperation::scratch(int local, int64_t piece) const {
  return is_small() ? slot(local).data : endpoint().scratch(local, piece);
}

std::byte* PiecedOperation::neighbour_source(int local) const {
  return window_->segment(local) + slot(local).offset;
}

// The tag depends on the collective: ranks that posted different collectives must not receive each other's
// messages, so that the comparison of headers finds the error first. Messages with one tag keep their order.
int PiecedOperation::tag(Leg leg, int64_t piece) const {
  const auto shape = static_cast<uint64_t>(shape_of(header()));
  const auto hash = static_cast<int>((shape * 0x9E3779B97F4A7C15u) >> 44);
  const auto turn = static_cast<int>(sequence() % ControlWindow::kSlots);
  return hash << 11 | turn << 5 | static_cast<int>(piece % 16) << 1 | static_cast<int>(leg);
}

bool PiecedOperation::advance() {
  if (!everyone_posted() || !decide()) return false;
  bool moved = step_fill();
  moved |= step_send();
  moved |= step_settle();
  moved |= step_collect();
  moved |= step_drain();
  if (!complete()) return moved;
  if (header().kind == CollectiveKind::kAllReduce)
    for (int local = 0; local < endpoint().locals(); ++local) note_finite(slot(local).finite);
  if (!direct_ && !is_small()) endpoint().release_scratch(sequence(), true);
  leave();
  return true;
}

// True if no rank needs the buffers of the earlier piece any more, which `piece` will overwrite.
bool PiecedOperation::buffer_is_free(int64_t piece) {
  if (piece < MpiEndpoint::kBuffers) return true;
  if (!messages(piece).sent.done()) return false;
  const int64_t earlier = piece - MpiEndpoint::kBuffers;
  if (direct_) return collected_ > earlier;
  return static_cast<int64_t>(least(&ControlSlot::drained)) > earlier;
}

bool PiecedOperation::step_fill() {
  if (filled_ == pieces_ || !buffer_is_free(filled_)) return false;
  if (!direct_) fill(filled_);
  own_slot().filled.set(++filled_);
  return true;
}

bool PiecedOperation::step_send() {
  if (sent_ == filled_) return false;
  if (!direct_ && static_cast<int64_t>(least(&ControlSlot::filled)) <= sent_) return false;
  send(sent_++);
  return true;
}

bool PiecedOperation::step_settle() {
  if (settled_ == sent_ || !settle(settled_)) return false;
  ++settled_;
  return true;
}

bool PiecedOperation::step_collect() {
  if (collected_ == settled_ || !collect(collected_)) return false;
  own_slot().finite = finite();
  own_slot().settled.set(++collected_);
  return true;
}

// In direct mode only inputs are drained, which were ready when they were posted.
bool PiecedOperation::step_drain() {
  if (drained_ == collected_) return false;
  if (drains()) {
    if (!direct_ && static_cast<int64_t>(least(&ControlSlot::settled)) <= drained_) return false;
    drain(drained_);
  }
  own_slot().drained.set(++drained_);
  return true;
}

// In direct mode the neighbours read and write this rank's memory until all of them have finished.
bool PiecedOperation::complete() {
  if (drained_ < pieces_) return false;
  if (direct_ && static_cast<int64_t>(least(&ControlSlot::drained)) < pieces_) return false;
  for (Messages& messages : messages_) {
    if (!messages.sent.done()) return false;
  }
  return true;
}

}  // namespace tutti
