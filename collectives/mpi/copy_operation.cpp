#include "collectives/mpi/copy_operation.h"

#include <algorithm>
#include <cstring>

namespace tutti {

CopyOperation::CopyOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : PiecedOperation(endpoint, std::move(job)), gathers_(header().kind == CollectiveKind::kAllGather) {
  const int64_t bytes = gathers_ ? static_cast<int64_t>(this->job().part.nbytes()) : whole_bytes();
  const int64_t most = gathers_ ? endpoint.chunk_bytes() : endpoint.piece_bytes();
  part_bytes_ = bytes;
  step_bytes_ = std::clamp<int64_t>(bytes, 1, most);
  set_pieces((bytes + step_bytes_ - 1) / step_bytes_);
}

PiecedOperation::Chunk CopyOperation::chunk(int64_t piece, int rank) const {
  const int64_t first = piece * step_bytes_;
  const int64_t bytes = std::min(step_bytes_, part_bytes_ - first);
  if (gathers_) return {rank * part_bytes_ + first, bytes, rank * step_bytes_};
  return {first, rank == job().root ? bytes : 0, 0};
}

void CopyOperation::fill(int64_t piece) {
  const Chunk mine = chunk(piece, endpoint().layout().rank());
  if (mine.bytes == 0) return;
  std::memcpy(scratch(endpoint().local(), piece) + mine.scratch, source() + piece * step_bytes_, mine.bytes);
}

void CopyOperation::send(int64_t piece) {
  if (!across_hosts()) return;
  send_own(piece);
  const HostLayout& layout = endpoint().layout();
  for (int owner = 0; owner < layout.size(); ++owner) {
    const Chunk theirs = chunk(piece, owner);
    const bool mine_to_take = layout.delegate(layout.host(), owner) == layout.rank();
    if (theirs.bytes == 0 || layout.is_local(owner) || !mine_to_take) continue;
    std::byte* const to = scratch(endpoint().local(), piece) + theirs.scratch;
    messages(piece).results.receive(endpoint().messages(), to, theirs.bytes, owner, tag(Leg::kResult, piece));
  }
}

void CopyOperation::send_own(int64_t piece) {
  const HostLayout& layout = endpoint().layout();
  const Chunk mine = chunk(piece, layout.rank());
  if (mine.bytes == 0) return;
  const std::byte* const from = scratch(endpoint().local(), piece) + mine.scratch;
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host()) continue;
    const int to = layout.delegate(host, layout.rank());
    messages(piece).sent.send(endpoint().messages(), from, mine.bytes, to, tag(Leg::kResult, piece));
  }
}

// The address of a rank's chunk in the memory of this host.
const std::byte* CopyOperation::holder(int64_t piece, int rank, const Chunk& chunk) const {
  const HostLayout& layout = endpoint().layout();
  const int local = layout.local_of(layout.delegate(layout.host(), rank));
  return direct() ? neighbour_source(local) + piece * step_bytes_ : scratch(local, piece) + chunk.scratch;
}

void CopyOperation::drain(int64_t piece) {
  const HostLayout& layout = endpoint().layout();
  for (int rank = 0; rank < layout.size(); ++rank) {
    const Chunk part = chunk(piece, rank);
    const bool is_here_already = rank == layout.rank() && source() + piece * step_bytes_ == whole() + part.at;
    if (part.bytes == 0 || is_here_already) continue;
    std::memcpy(whole() + part.at, holder(piece, rank, part), part.bytes);
  }
}

}  // namespace tutti
