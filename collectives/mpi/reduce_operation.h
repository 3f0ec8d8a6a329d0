#pragma once

#include "collectives/mpi/pieced_operation.h"
#include "collectives/ordered_sum.h"

namespace tutti {

// all_reduce (and a barrier between hosts, which is one of a single number) and reduce_scatter. Rank r sums
// chunk r of every piece, straight from its neighbours' memory and from the sums of subtrees that the other
// hosts send it.
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
  std::byte* place(int64_t piece, int local, const Chunk& chunk) const;
  bool sum(const std::vector<Summand>& summands, const std::vector<void*>& outputs, int64_t bytes);
  bool speaks_for_host(int owner) const;
  void send_subtrees(int64_t piece, int owner);
  void expect_subtrees(int64_t piece);
  void add_remote(int64_t piece, const Chunk& mine, std::vector<Summand>& summands);
  std::vector<void*> outputs(int64_t piece, const Chunk& mine) const;
  void spread_result(int64_t piece, const Chunk& mine);

  bool scatters_;
  int64_t part_bytes_ = 0;         // of reduce_scatter's output
  int64_t step_bytes_ = 0;         // of it a piece
  std::byte* outgoing_ = nullptr;  // the free end of the buffer of sums to send
};

}  // namespace tutti
