#pragma once

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

// A collective that MPI carries out by itself, looked after by MPI_Test.
class NativeOperation final : public Operation {
 public:
  NativeOperation(const MpiSeat& seat, const NativeSums& sums, CollectiveJob job);
  bool advance() override;

 private:
  void start(MPI_Comm comm, const NativeSums& sums);
  void all_reduce(MPI_Comm comm, const NativeSums& sums);
  void reduce_scatter(MPI_Comm comm, const NativeSums& sums);
  void all_gather(MPI_Comm comm);
  void broadcast(MPI_Comm comm);
  void barrier(MPI_Comm comm);

  Requests requests_;
};

}  // namespace tutti
