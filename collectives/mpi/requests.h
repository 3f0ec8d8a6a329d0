#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// What MPI carries out meanwhile. What is not complete in the end is given up: nothing is received any more
// into memory that may be gone.
class Requests {
 public:
  Requests() = default;
  Requests(Requests&&) = default;
  ~Requests();

  void send(MPI_Comm comm, const void* data, int64_t bytes, int to, int tag);
  void receive(MPI_Comm comm, void* data, int64_t bytes, int from, int tag);
  void add_collective(MPI_Request request) { add(request, Kind::kCollective); }

  // Whether all have completed; never blocks.
  bool done();

 private:
  enum class Kind { kSend, kReceive, kCollective };
  void add(MPI_Request request, Kind kind);
  static void give_up(MPI_Request request, Kind kind);

  std::vector<MPI_Request> requests_;
  std::vector<Kind> kinds_;
};

// A small message that has come from anybody; never blocks.
struct Incoming {
  int from = 0;
  std::string bytes;
};
std::optional<Incoming> receive_any(MPI_Comm comm, int tag);

}  // namespace tutti
