#pragma once

#include "collectives/mpi/pieced_operation.h"

namespace tutti {

// all_gather and broadcast. Each chunk is sent once to each other host, where ranks share memory.
class CopyOperation final : public PiecedOperation {
 public:
  CopyOperation(MpiEndpoint& endpoint, CollectiveJob job);

 private:
  Chunk chunk(int64_t piece, int rank) const override;
  void fill(int64_t piece) override;
  void send(int64_t piece) override;
  bool settle(int64_t) override { return true; }
  bool collect(int64_t piece) override { return messages(piece).results.done(); }
  void drain(int64_t piece) override;
  bool drains() const override { return whole() != nullptr; }  // else this rank only serves
  // Data from other hosts must be received into memory that the neighbours share.
  bool can_be_direct() const override { return !across_hosts(); }

  void send_own(int64_t piece);
  const std::byte* own_input() const { return gathers() ? part() : whole(); }
  void drain_from(int64_t piece, int rank, const Chunk& chunk);
};

}  // namespace tutti
