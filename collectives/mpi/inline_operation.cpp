#include "collectives/mpi/inline_operation.h"

#include <cstring>

#include "collectives/ordered_sum.h"

namespace tutti {

bool InlineOperation::advance() {
  if (!everyone_posted()) return false;
  take_result();
  leave();
  return true;
}

void InlineOperation::prepare(ControlSlot& slot) {
  const HostLayout& layout = seat().layout();
  auto bytes = static_cast<int64_t>(header().bytes);
  if (header().kind == CollectiveKind::kAllGather) bytes /= layout.size();
  if (header().kind == CollectiveKind::kBroadcast && layout.rank() != job().root) return;
  if (bytes > 0) std::memcpy(slot.data, source(), bytes);
}

void InlineOperation::take_result() {
  if (header().bytes == 0) return;
  const HostLayout& layout = seat().layout();
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
  for (int local = 0; local < seat().locals(); ++local) {
    summands.push_back({{local, local + 1}, slot(local).data + first * item_bytes()});
  }
  void* const output = out;
  found(ordered_sum(job().whole.scalar_type(), summands, {&output, 1}, count));
}

void InlineOperation::gather() {
  const int64_t bytes = static_cast<int64_t>(header().bytes) / seat().layout().size();
  for (int local = 0; local < seat().locals(); ++local) {
    std::memcpy(whole() + local * bytes, slot(local).data, bytes);
  }
}

}  // namespace tutti
