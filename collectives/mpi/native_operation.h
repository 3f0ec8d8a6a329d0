#pragma once

#include <array>
#include <vector>

#include "collectives/mpi/operation.h"
#include "collectives/mpi/requests.h"

namespace tutti {

// MPI's datatypes and sums, also for 16-bit floats, which MPI does not have.
class NativeSums {
 public:
  struct Sum {
    MPI_Datatype type;
    MPI_Op op;
  };

  NativeSums();
  ~NativeSums();
  NativeSums(const NativeSums&) = delete;

  Sum of(c10::ScalarType dtype) const;

 private:
  MPI_Datatype two_bytes_ = MPI_DATATYPE_NULL;
  MPI_Op bfloat16_ = MPI_OP_NULL;
  MPI_Op float16_ = MPI_OP_NULL;
};

// A collective that MPI runs. If ranks call different collectives, MPI may end the process or corrupt memory.
// So a small all-reduce first compares (kind, bytes, cut) of all ranks, and the collective starts only if all
// agree. The comparison also serves as the barrier.
class NativeOperation final : public Operation {
 public:
  NativeOperation(MpiEndpoint& endpoint, const NativeSums& sums, CollectiveJob job);
  bool advance() override;

 private:
  bool may_start();
  void start();
  void check_sum();
  void count_parts();
  std::byte* packed_part(int rank) const;
  void unpack_all();
  void all_reduce(MPI_Comm comm);
  void reduce_scatter(MPI_Comm comm);
  void all_gather(MPI_Comm comm);
  void broadcast(MPI_Comm comm);

  MpiEndpoint& endpoint_;
  const NativeSums& sums_;
  std::array<int64_t, 2> shapes_;  // the maximum over ranks, and minus the minimum
  at::Tensor packed_;              // scratch: the whole as MPI sees it, if its parts do not lie in rank order
  at::Tensor dense_part_;          // scratch: this rank's part of the sum, if it is lost or not dense
  std::vector<int> counts_;        // items of each part
  std::vector<int> begins_;        // and where they begin
  Requests guard_;
  Requests requests_;
  bool started_ = false;
};

}  // namespace tutti
