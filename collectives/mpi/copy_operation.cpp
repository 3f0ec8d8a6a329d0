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
  std::memcpy(scratch(endpoint().local(), piece) + mine.scratch, own_input(mine), mine.bytes);
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
  return direct() ? neighbour_source(local) + chunk.at : scratch(local, piece) + chunk.scratch;
}

// This rank's own chunk may be in the whole already.
void CopyOperation::drain(int64_t piece) {
  for (int rank = 0; rank < endpoint().layout().size(); ++rank) {
    const Chunk chunk = this->chunk(piece, rank);
    const bool is_own = rank == endpoint().layout().rank();
    if (chunk.bytes > 0)
      unpack(rank, chunk.at, chunk.bytes, is_own ? own_input(chunk) : holder(piece, rank, chunk));
  }
}

}  // namespace tutti
