#include "collectives/mpi/reduce_operation.h"

#include <algorithm>
#include <cstring>

#include "tensors/finite.h"

namespace tutti {
namespace {

// The minimum size of a chunk: a small piece is summed by the first ranks only, with fewer messages.
constexpr int64_t kLeastChunkBytes = 4096;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ReduceOperation::ReduceOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : PiecedOperation(endpoint, std::move(job)), scatters_(header().kind == CollectiveKind::kReduceScatter) {
  if (scatters_)
    set_pieces_of_parts();
  else
    set_pieces(ceil_div(whole_bytes(), endpoint.piece_bytes()));
}

PiecedOperation::Chunk ReduceOperation::chunk(int64_t piece, int rank) const {
  return scatters_ ? chunk_of_part(piece, rank) : chunk_of_all(piece, rank);
}

PiecedOperation::Chunk ReduceOperation::chunk_of_all(int64_t piece, int rank) const {
  const int64_t first = piece * endpoint().piece_bytes();
  const int64_t bytes = std::min(endpoint().piece_bytes(), whole_bytes() - first);
  const int64_t even = ceil_div(ceil_div(bytes, endpoint().layout().size()), 64) * 64;
  const int64_t each = std::max(even, kLeastChunkBytes);
  const int64_t begin = std::min(rank * each, bytes);
  return {first + begin, std::min(each, bytes - begin), begin};
}

// The address of a local rank's input: the rank's own memory, or packed.
std::byte* ReduceOperation::base(int64_t piece, int local) const {
  return direct() ? neighbour_source(local) : scratch(local, piece);
}

std::vector<ReduceOperation::Span> ReduceOperation::spans(int rank, const Chunk& chunk) const {
  if (!direct()) return {{chunk.scratch, 0, chunk.bytes}};
  std::vector<Span> spans;
  for (const CutRun& run : runs(rank, chunk.at, chunk.bytes))
    spans.push_back({run.whole, run.part, run.count});
  return spans;
}

// The address of a local rank's input for a chunk of an all_reduce.
std::byte* ReduceOperation::address(int64_t piece, int local, const Chunk& chunk) const {
  return base(piece, local) + (direct() ? chunk.at : chunk.scratch);
}

bool ReduceOperation::sum(const std::vector<Summand>& summands, const std::vector<void*>& outputs,
                          int64_t bytes) {
  return ordered_sum(job().whole.scalar_type(), summands, outputs, bytes / item_bytes());
}

bool ReduceOperation::is_delegate(int owner) const {
  const HostLayout& layout = endpoint().layout();
  return !layout.is_local(owner) && layout.delegate(layout.host(), owner) == layout.rank();
}

void ReduceOperation::fill(int64_t piece) {
  for (int rank = 0; rank < endpoint().layout().size(); ++rank) {
    const Chunk part = chunk(piece, rank);
    if (part.bytes > 0) pack(rank, part.at, part.bytes, scratch(endpoint().local(), piece) + part.scratch);
  }
}

void ReduceOperation::send(int64_t piece) {
  if (!across_hosts()) return;
  expect_subtrees(piece);
  const HostLayout& layout = endpoint().layout();
  std::size_t buffer = 0;
  for (int owner = 0; owner < layout.size(); ++owner) {
    if (is_delegate(owner)) buffer += chunk(piece, owner).bytes * layout.subtrees(layout.host()).size();
  }
  messages(piece).outgoing.resize(buffer);
  outgoing_ = messages(piece).outgoing.data();
  for (int owner = 0; owner < layout.size(); ++owner) {
    if (is_delegate(owner)) send_subtrees(piece, owner);
  }
}

void ReduceOperation::send_subtrees(int64_t piece, int owner) {
  const HostLayout& layout = endpoint().layout();
  const Chunk theirs = chunk(piece, owner);
  if (theirs.bytes == 0) return;
  const std::byte* const first = outgoing_;
  for (const RankRange& subtree : layout.subtrees(layout.host())) {
    for (const Span& span : spans(owner, theirs)) {
      std::vector<Summand> summands;
      for (int rank = subtree.begin; rank < subtree.end; ++rank)
        summands.push_back({{rank, rank + 1}, base(piece, layout.local_of(rank)) + span.at});
      sum(summands, {outgoing_ + span.in_chunk}, span.bytes);
    }
    outgoing_ += theirs.bytes;
  }
  messages(piece).sent.send(endpoint().messages(), first, outgoing_ - first, owner, tag(Leg::kSum, piece));
  if (scatters_) return;
  std::byte* const result = address(piece, endpoint().local(), theirs);
  messages(piece).results.receive(endpoint().messages(), result, theirs.bytes, owner,
                                  tag(Leg::kResult, piece));
}

void ReduceOperation::expect_subtrees(int64_t piece) {
  const HostLayout& layout = endpoint().layout();
  const Chunk mine = chunk(piece, layout.rank());
  if (mine.bytes == 0) return;
  std::size_t remote = 0;
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host != layout.host()) remote += layout.subtrees(host).size();
  }
  messages(piece).incoming.resize(remote * mine.bytes);
  std::byte* to = messages(piece).incoming.data();
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host()) continue;
    const int64_t bytes = mine.bytes * static_cast<int64_t>(layout.subtrees(host).size());
    const int from = layout.delegate(host, layout.rank());
    messages(piece).sums.receive(endpoint().messages(), to, bytes, from, tag(Leg::kSum, piece));
    to += bytes;
  }
}

void ReduceOperation::add_remote(int64_t piece, const Chunk& mine, const Span& span,
                                 std::vector<Summand>& summands) {
  const HostLayout& layout = endpoint().layout();
  const std::byte* from = messages(piece).incoming.data();
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host()) continue;
    for (const RankRange& subtree : layout.subtrees(host)) {
      summands.push_back({subtree, from + span.in_chunk});
      from += mine.bytes;
    }
  }
  std::sort(summands.begin(), summands.end(),
            [](const Summand& a, const Summand& b) { return a.ranks.begin < b.ranks.begin; });
}

std::vector<void*> ReduceOperation::outputs(int64_t piece, const Chunk& mine, const Span& span) const {
  if (scatters_ && !in_place()) return {part() + mine.at + span.in_chunk};
  if (scatters_ || !direct()) return {base(piece, endpoint().local()) + span.at};
  std::vector<void*> all;
  for (int local = 0; local < endpoint().locals(); ++local) all.push_back(base(piece, local) + span.at);
  return all;
}

bool ReduceOperation::settle(int64_t piece) {
  if (!messages(piece).sums.done()) return false;
  const HostLayout& layout = endpoint().layout();
  const Chunk mine = chunk(piece, layout.rank());
  const bool is_wanted = mine.bytes > 0 && (!scatters_ || part());
  if (!is_wanted) return true;
  for (const Span& span : spans(layout.rank(), mine)) sum_span(piece, mine, span);
  if (!scatters_ && across_hosts()) spread_result(piece, mine);
  if (scatters_ && in_place() && !direct())
    unpack(layout.rank(), mine.at, mine.bytes, scratch(endpoint().local(), piece) + mine.scratch);
  return true;
}

void ReduceOperation::sum_span(int64_t piece, const Chunk& mine, const Span& span) {
  const HostLayout& layout = endpoint().layout();
  std::vector<Summand> summands;
  for (int rank : layout.neighbours())
    summands.push_back({{rank, rank + 1}, base(piece, layout.local_of(rank)) + span.at});
  if (across_hosts()) add_remote(piece, mine, span, summands);
  note_finite(sum(summands, outputs(piece, mine, span), span.bytes));
}

void ReduceOperation::spread_result(int64_t piece, const Chunk& mine) {
  const HostLayout& layout = endpoint().layout();
  const std::byte* const result = address(piece, endpoint().local(), mine);
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host()) continue;
    const int to = layout.delegate(host, layout.rank());
    messages(piece).sent.send(endpoint().messages(), result, mine.bytes, to, tag(Leg::kResult, piece));
  }
}

// In direct mode writes the result from another host into the neighbours' memory; from scratch they copy it.
bool ReduceOperation::collect(int64_t piece) {
  if (!messages(piece).results.done()) return false;
  if (scatters_ || !across_hosts()) return true;
  for (int owner = 0; owner < endpoint().layout().size(); ++owner) {
    const Chunk theirs = chunk(piece, owner);
    if (theirs.bytes == 0 || !is_delegate(owner)) continue;
    const std::byte* const result = address(piece, endpoint().local(), theirs);
    note_finite(all_finite(job().whole.scalar_type(), result, theirs.bytes / item_bytes()));
    for (int local = 0; direct() && local < endpoint().locals(); ++local) {
      if (local != endpoint().local()) std::memcpy(address(piece, local, theirs), result, theirs.bytes);
    }
  }
  return true;
}

void ReduceOperation::drain(int64_t piece) {
  const HostLayout& layout = endpoint().layout();
  for (int owner = 0; owner < layout.size(); ++owner) {
    const Chunk part = chunk(piece, owner);
    const int holder = layout.local_of(layout.delegate(layout.host(), owner));
    if (part.bytes > 0) unpack(owner, part.at, part.bytes, scratch(holder, piece) + part.scratch);
  }
}

}  // namespace tutti
