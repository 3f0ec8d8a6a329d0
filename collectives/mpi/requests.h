#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace tutti {

// Messages under way between two hosts.
class Requests {
 public:
  void send(MPI_Comm comm, const void* data, int64_t bytes, int to, int tag);
  void receive(MPI_Comm comm, void* data, int64_t bytes, int from, int tag);
  void add(MPI_Request request) { requests_.push_back(request); }

  // Whether all have completed; never blocks.
  bool done();

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace tutti
