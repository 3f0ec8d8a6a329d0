#pragma once

#include "collectives/mpi/pieced_operation.h"

namespace tutti {

// all_gather and broadcast: every chunk crosses once to each other host, and the ranks of a host fetch it
// from the one that has it.
class CopyOperation final : public PiecedOperation {
 public:
  CopyOperation(MpiEndpoint& endpoint, CollectiveJob job);

 private:
  Chunk chunk(int64_t piece, int rank) const override;
  void fill(int64_t piece) override;
  void send(int64_t piece) override;
  bool settle(int64_t) override { return true; }
  bool collect(int64_t piece) override { return mail(piece).results.done(); }
  void drain(int64_t piece) override;
  bool drains() const override { return true; }
  // What comes from other hosts needs a place that the neighbours see.
  bool can_be_direct() const override { return !across_hosts(); }

  void send_own(int64_t piece);
  const std::byte* holder(int64_t piece, int rank, const Chunk& chunk) const;

  bool gathers_;
  int64_t part_bytes_ = 0;  // of all_gather's input
  int64_t step_bytes_ = 0;  // of a rank's data a piece
};

}  // namespace tutti
