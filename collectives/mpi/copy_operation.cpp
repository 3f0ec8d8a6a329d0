#include "collectives/mpi/copy_operation.h"

#include <algorithm>
#include <cstring>

namespace tutti {

CopyOperation::CopyOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : PiecedOperation(endpoint, std::move(job)) {
  if (gathers())
    set_pieces_of_parts();
  else
    set_pieces((whole_bytes() + endpoint.piece_bytes() - 1) / endpoint.piece_bytes());
}

PiecedOperation::Chunk CopyOperation::chunk(int64_t piece, int rank) const {
  if (gathers()) return chunk_of_part(piece, rank);
  const int64_t first = piece * endpoint().piece_bytes();
  const int64_t bytes = std::min(endpoint().piece_bytes(), whole_bytes() - first);
  return {first, rank == job().root ? bytes : 0, 0};
}

void CopyOperation::fill(int64_t piece) {
  const Chunk mine = chunk(piece, endpoint().layout().rank());
  if (mine.bytes == 0) return;
  std::byte* const to = scratch(endpoint().local(), piece) + mine.scratch;
  for (const CutRun& run : own_runs(endpoint().layout().rank(), mine.at, mine.bytes))
    std::memcpy(to + run.part, own_input() + run.whole, run.count);
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

// This rank's own chunk may be in the whole already.
void CopyOperation::drain(int64_t piece) {
  const int self = endpoint().layout().rank();
  for (int rank = 0; rank < endpoint().layout().size(); ++rank) {
    const Chunk chunk = this->chunk(piece, rank);
    if (chunk.bytes == 0) continue;
    if (rank != self)
      drain_from(piece, rank, chunk);
    else if (!in_place())
      unpack(rank, chunk.at, chunk.bytes, own_input() + chunk.at);
  }
}

// Copies a rank's chunk from where it lies in the memory of this host.
void CopyOperation::drain_from(int64_t piece, int rank, const Chunk& chunk) {
  const HostLayout& layout = endpoint().layout();
  const int local = layout.local_of(layout.delegate(layout.host(), rank));
  if (!direct()) return unpack(rank, chunk.at, chunk.bytes, scratch(local, piece) + chunk.scratch);
  const std::byte* const from = neighbour_source(local);
  if (!slot(local).in_place) return unpack(rank, chunk.at, chunk.bytes, from + chunk.at);
  for (const CutRun& run : runs(rank, chunk.at, chunk.bytes))
    std::memcpy(whole() + run.whole, from + run.whole, run.count);
}

}  // namespace tutti
