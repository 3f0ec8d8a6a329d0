#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

namespace tutti {

// Throws OperatingError naming `call` and MPI's reason unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// A communicator that is freed with its owner and returns errors instead of ending the process.
class MpiComm {
 public:
  MpiComm() = default;
  explicit MpiComm(MPI_Comm owned);
  MpiComm(MpiComm&& other) noexcept;
  MpiComm& operator=(MpiComm&& other) noexcept;
  ~MpiComm();

  MPI_Comm get() const { return comm_; }
  MpiComm duplicate() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// This process among those that mpirun started: MPI from its start to its end. One a process; one thread at a
// time calls MPI (MPI_THREAD_SERIALIZED). Constructor and destructor are collective.
class MpiWorld {
 public:
  // Ranks share a host when they can share memory, unless `pretended_host` (tests) tells them apart further.
  MpiWorld(int* argc, char*** argv, const std::string& pretended_host = "");
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm comm() const { return comm_.get(); }
  std::vector<int> all_ranks() const;

  // Which host each rank is on: hosts are numbered by their lowest rank.
  const std::vector<int>& host_of() const { return host_of_; }
  const std::string& host_name(int rank) const { return host_names_[rank]; }
  // The ranks on this rank's host, ascending, itself included.
  const std::vector<int>& host_ranks() const { return host_ranks_; }

  // A rank of this host whose process is gone, when there is one. Cheap: a system call a neighbour.
  std::optional<int> lost_peer() const;

  // A new communicator of `ranks` (ascending, this one among them). Collective over them alone.
  MpiComm make_comm(const std::vector<int>& ranks) const;

  // Leaves MPI without waiting for the others: once a rank is lost, MPI_Finalize would hang. mpirun ends the
  // rest.
  void abandon() { abandoned_ = true; }
  [[noreturn]] void abort(int exit_code);

 private:
  void find_hosts(const std::string& pretended_host);
  void find_processes();

  MpiComm comm_;
  int rank_ = 0;
  int size_ = 1;
  bool abandoned_ = false;
  std::vector<int> host_of_;
  std::vector<std::string> host_names_;
  std::vector<int> host_ranks_;
  std::vector<int> processes_;  // of host_ranks_; 0 = can't be seen from here
};

}  // namespace tutti
