#include "collectives/mpi/requests.h"

#include "collectives/mpi/world.h"

namespace tutti {

Requests::~Requests() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  for (std::size_t i = 0; i < requests_.size() && !finalized; ++i) release(requests_[i], kinds_[i]);
}

void Requests::release(MPI_Request request, Kind kind) {
  if (request == MPI_REQUEST_NULL) return;
  if (kind == Kind::kReceive) MPI_Cancel(&request);
  MPI_Request_free(&request);
}

void Requests::send(MPI_Comm comm, const void* data, int64_t bytes, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm, &request), "MPI_Isend");
  add(request, Kind::kSend);
}

void Requests::receive(MPI_Comm comm, void* data, int64_t bytes, int from, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm, &request), "MPI_Irecv");
  add(request, Kind::kReceive);
}

void Requests::add(MPI_Request request, Kind kind) {
  requests_.push_back(request);
  kinds_.push_back(kind);
}

bool Requests::done() {
  if (requests_.empty()) return true;
  int all = 0;
  const auto count = static_cast<int>(requests_.size());
  check_mpi(MPI_Testall(count, requests_.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (!all) return false;
  requests_.clear();
  kinds_.clear();
  return true;
}

void Outgoing::send(MPI_Comm comm, std::string bytes, int to, int tag) {
  auto& [kept, requests] = messages_.emplace_back(std::move(bytes), Requests());
  requests.send(comm, kept.data(), static_cast<int64_t>(kept.size()), to, tag);
}

void Outgoing::forget_sent() {
  while (!messages_.empty() && messages_.front().second.done()) messages_.pop_front();
}

std::optional<Incoming> receive_any(MPI_Comm comm, int tag) {
  int waiting = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &waiting, &status), "MPI_Iprobe");
  if (!waiting) return std::nullopt;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  Incoming incoming{status.MPI_SOURCE, std::string(bytes, '\0')};
  check_mpi(MPI_Recv(incoming.bytes.data(), bytes, MPI_BYTE, incoming.from, tag, comm, MPI_STATUS_IGNORE),
            "MPI_Recv");
  return incoming;
}

}  // namespace tutti
