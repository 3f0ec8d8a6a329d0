#pragma once

#include <array>

#include "collectives/mpi/operation.h"
#include "collectives/mpi/requests.h"

namespace tutti {

// MPI's sums; of 16-bit floats too, which MPI does not know.
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

// A collective that MPI carries out by itself, looked after by MPI_Test. MPI ends the process, or worse, when
// ranks call different ones. So every rank's (kind, bytes) are compared first, by a tiny collective that all
// ranks call alike; where they differ this one never starts. It also is the barrier.
class NativeOperation final : public Operation {
 public:
  NativeOperation(MpiEndpoint& endpoint, const NativeSums& sums, CollectiveJob job);
  bool advance() override;

 private:
  bool may_start();
  void start();
  void look_at_sum();
  void all_reduce(MPI_Comm comm);
  void reduce_scatter(MPI_Comm comm);
  void all_gather(MPI_Comm comm);
  void broadcast(MPI_Comm comm);

  MpiEndpoint& endpoint_;
  const NativeSums& sums_;
  std::array<int64_t, 2> shapes_;  // the largest over ranks, and minus the smallest
  Requests guard_;
  Requests requests_;
  bool started_ = false;
};

}  // namespace tutti
