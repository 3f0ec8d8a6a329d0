#pragma once

#include <mpi.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// A set of MPI requests. The destructor cancels incomplete receives, which could write to freed memory.
class Requests {
 public:
  Requests() = default;
  Requests(Requests&&) = default;
  ~Requests();

  void send(MPI_Comm comm, const void* data, int64_t bytes, int to, int tag);
  void receive(MPI_Comm comm, void* data, int64_t bytes, int from, int tag);

  // True if all have completed; never blocks.
  bool done();

 private:
  enum class Kind { kSend, kReceive };
  void add(MPI_Request request, Kind kind);
  static void release(MPI_Request request, Kind kind);

  std::vector<MPI_Request> requests_;
  std::vector<Kind> kinds_;
};

// Pending sends with their bytes.
class Outgoing {
 public:
  void send(MPI_Comm comm, std::string bytes, int to, int tag);
  // Drops completed sends, oldest first, and stops at the first pending send: testing a pending send may cost
  // a time slice. Never blocks.
  void forget_sent();
  bool empty() const { return messages_.empty(); }

 private:
  std::list<std::pair<std::string, Requests>> messages_;
};

// Receives a small message from any rank, if one has arrived; never blocks.
struct Incoming {
  int from = 0;
  std::string bytes;
};
std::optional<Incoming> receive_any(MPI_Comm comm, int tag);

}  // namespace tutti
