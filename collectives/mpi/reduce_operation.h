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

  Chunk chunk_of_scatter(int64_t piece, int rank) const;
  Chunk chunk_of_all(int64_t piece, int rank) const;
  std::byte* address(int64_t piece, int local, const Chunk& chunk) const;
  bool sum(const std::vector<Summand>& summands, const std::vector<void*>& outputs, int64_t bytes);
  bool is_delegate(int owner) const;
  void send_subtrees(int64_t piece, int owner);
  void expect_subtrees(int64_t piece);
  void add_remote(int64_t piece, const Chunk& mine, std::vector<Summand>& summands);
  std::vector<void*> outputs(int64_t piece, const Chunk& mine) const;
  void spread_result(int64_t piece, const Chunk& mine);

  bool scatters_;
  int64_t part_bytes_ = 0;         // size of reduce_scatter's output
  int64_t step_bytes_ = 0;         // bytes of the output in each piece
  std::byte* outgoing_ = nullptr;  // end of the sums in the send buffer
};

}  // namespace tutti
