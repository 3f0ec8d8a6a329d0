#pragma once

#include "collectives/mpi/pieced_operation.h"
#include "collectives/ordered_sum.h"

namespace tutti {

// all_reduce, reduce_scatter, and the barrier between hosts (an all_reduce of one number). Rank r sums chunk
// r of every piece, from its neighbours' memory and the sums of subtrees that other hosts send.
class ReduceOperation final : public PiecedOperation {
 public:
  ReduceOperation(MpiEndpoint& endpoint, CollectiveJob job);

 private:
  Chunk chunk(int64_t piece, int rank) const override;
  void fill(int64_t piece) override;
  void send(int64_t piece) override;
  bool settle(int64_t piece) override;
  bool collect(int64_t piece) override;
  void drain(int64_t piece) override;
  bool drains() const override { return !scatters_ && !direct(); }
  bool can_be_direct() const override { return true; }

  // A run of bytes to sum.
  struct Span {
    int64_t at = 0;        // within `base`
    int64_t in_chunk = 0;  // within its chunk
    int64_t bytes = 0;
  };
  std::vector<Span> spans(int rank, const Chunk& chunk) const;
  std::byte* base(int64_t piece, int local) const;

  Chunk chunk_of_all(int64_t piece, int rank) const;
  std::byte* address(int64_t piece, int local, const Chunk& chunk) const;
  bool sum(const std::vector<Summand>& summands, const std::vector<void*>& outputs, int64_t bytes);
  bool is_delegate(int owner) const;
  void send_subtrees(int64_t piece, int owner);
  void expect_subtrees(int64_t piece);
  void sum_span(int64_t piece, const Chunk& mine, const Span& span);
  void add_remote(int64_t piece, const Chunk& mine, const Span& span, std::vector<Summand>& summands);
  std::vector<void*> outputs(int64_t piece, const Chunk& mine, const Span& span) const;
  void spread_result(int64_t piece, const Chunk& mine);

  bool scatters_;
  std::byte* outgoing_ = nullptr;  // end of the sums in the send buffer
};

}  // namespace tutti
