#include "collectives/mpi/requests.h"

#include "collectives/mpi/world.h"

namespace tutti {

void Requests::send(MPI_Comm comm, const void* data, int64_t bytes, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm, &request), "MPI_Isend");
  add(request);
}

void Requests::receive(MPI_Comm comm, void* data, int64_t bytes, int from, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm, &request), "MPI_Irecv");
  add(request);
}

bool Requests::done() {
  if (requests_.empty()) return true;
  int all = 0;
  const auto count = static_cast<int>(requests_.size());
  check_mpi(MPI_Testall(count, requests_.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (all) requests_.clear();
  return all != 0;
}

}  // namespace tutti
