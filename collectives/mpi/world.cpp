#include "collectives/mpi/world.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

bool process_is_gone(int process) { return kill(process, 0) != 0 && errno == ESRCH; }

std::string processor_name() {
  char text[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  check_mpi(MPI_Get_processor_name(text, &length), "MPI_Get_processor_name");
  return text;
}

// Gathers a text of each rank, cut to `width` bytes.
std::vector<std::string> gather_texts(MPI_Comm comm, int size, std::string mine, std::size_t width) {
  mine.resize(width);
  std::string all(width * size, '\0');
  const int n = static_cast<int>(width);
  check_mpi(MPI_Allgather(mine.data(), n, MPI_CHAR, all.data(), n, MPI_CHAR, comm), "MPI_Allgather");
  std::vector<std::string> texts;
  for (int rank = 0; rank < size; ++rank) texts.push_back(all.substr(rank * width, width).c_str());
  return texts;
}

// The lowest of the ranks that share memory with this rank.
int lowest_neighbour(MPI_Comm comm, int rank) {
  MPI_Comm split = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &split),
            "MPI_Comm_split_type");
  const MpiComm sharing(split);
  int lowest = 0;
  check_mpi(MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, split), "MPI_Allreduce");
  return lowest;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw OperatingError(std::string(call) + " failed: " + text);
}

MpiComm::MpiComm(MPI_Comm owned) : comm_(owned) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiComm::MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}

MpiComm& MpiComm::operator=(MpiComm&& other) noexcept {
  std::swap(comm_, other.comm_);
  return *this;
}

MpiComm::~MpiComm() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (comm_ != MPI_COMM_NULL && !finalized) MPI_Comm_free(&comm_);
}

MpiComm MpiComm::duplicate() const {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm_, &copy), "MPI_Comm_dup");
  return MpiComm(copy);
}

MpiWorld::MpiWorld(int* argc, char*** argv, const std::string& pretended_host) {
  if (ended()) throw OperatingError("MPI has ended in this process, and cannot start again");
  int provided = 0;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED) throw OperatingError("this MPI has no MPI_THREAD_SERIALIZED");
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  comm_ = MpiComm(copy);
  MPI_Comm_rank(comm(), &rank_);
  MPI_Comm_size(comm(), &size_);
  find_hosts(pretended_host);
  find_processes();
}

bool MpiWorld::ended() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

MpiWorld::~MpiWorld() {
  if (abandoned_) return;
  comm_ = MpiComm();
  MPI_Finalize();
}

void MpiWorld::find_hosts(const std::string& pretended_host) {
  host_names_ = gather_texts(comm(), size_, processor_name(), 64);
  const auto pretended = gather_texts(comm(), size_, pretended_host, 64);
  const int mine = lowest_neighbour(comm(), rank_);
  std::vector<int> lowest(size_);
  check_mpi(MPI_Allgather(&mine, 1, MPI_INT, lowest.data(), 1, MPI_INT, comm()), "MPI_Allgather");

  std::map<std::pair<int, std::string>, int> numbers;
  for (int rank = 0; rank < size_; ++rank) {
    const auto next = static_cast<int>(numbers.size());
    host_of_.push_back(numbers.try_emplace({lowest[rank], pretended[rank]}, next).first->second);
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (host_of_[rank] == host_of_[rank_]) host_ranks_.push_back(rank);
    if (!pretended[rank].empty()) host_names_[rank] = pretended[rank];
  }
}

void MpiWorld::find_processes() {
  const int mine = getpid();
  std::vector<int> all(size_);
  check_mpi(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm()), "MPI_Allgather");
  // All processes are alive now, so one that seems dead is in another process namespace.
  for (int rank : host_ranks_) processes_.push_back(process_is_gone(all[rank]) ? 0 : all[rank]);
  check_mpi(MPI_Barrier(comm()), "MPI_Barrier");
}

std::vector<int> MpiWorld::all_ranks() const {
  std::vector<int> ranks(size_);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::optional<int> MpiWorld::lost_peer() const {
  for (std::size_t i = 0; i < host_ranks_.size(); ++i) {
    if (processes_[i] != 0 && process_is_gone(processes_[i])) return host_ranks_[i];
  }
  return std::nullopt;
}

MpiComm MpiWorld::make_comm(const std::vector<int>& ranks) const {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(comm(), &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  const int code = MPI_Comm_create_group(comm(), some, 0, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  check_mpi(code, "MPI_Comm_create_group");
  return MpiComm(made);
}

void MpiWorld::abort(int exit_code) {
  MPI_Abort(comm(), exit_code);
  std::_Exit(exit_code);
}

}  // namespace tutti
