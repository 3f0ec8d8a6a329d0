#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

namespace tutti {

// Throws OperatingError with `call` and MPI's reason unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// Owns a communicator that returns errors instead of ending the process.
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

// Initialises and finalises MPI, and knows all ranks and hosts. One per process. MPI is called by one thread
// at a time (MPI_THREAD_SERIALIZED). Constructor and destructor are collective.
class MpiWorld {
 public:
  // Ranks that can share memory share a host. `pretended_host` (tests) separates ranks further.
  MpiWorld(int* argc, char*** argv, const std::string& pretended_host = "");
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;

  // True if this process had a world: MPI starts only once.
  static bool ended();

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm comm() const { return comm_.get(); }
  std::vector<int> all_ranks() const;

  // The host of each rank; hosts are numbered by their lowest rank.
  const std::vector<int>& host_of() const { return host_of_; }
  const std::string& host_name(int rank) const { return host_names_[rank]; }
  // The ranks on this rank's host, ascending, with this rank.
  const std::vector<int>& host_ranks() const { return host_ranks_; }

  // A rank of this host with a dead process, if any. Costs a system call per neighbour.
  std::optional<int> lost_peer() const;

  // Makes a communicator of `ranks` (ascending, with this rank). Collective over `ranks`.
  MpiComm make_comm(const std::vector<int>& ranks) const;

  // Makes the destructor skip MPI_Finalize, which hangs if a rank is lost. mpirun then ends the other ranks.
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
  std::vector<int> processes_;  // of host_ranks_; 0 = in another process namespace
};

}  // namespace tutti
