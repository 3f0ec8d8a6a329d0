#include "collectives/mpi/endpoint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "collectives/mpi/world.h"
#include "runtime/error.h"
#include "tensors/memory/meter.h"

namespace tutti {

namespace {

constexpr int64_t kPage = 4096;

// Reserves the pages now, so that a lack of memory is an error here and not a SIGBUS in a training step.
// Refuses more than the free memory first, since otherwise the kernel kills processes to make room.
int make_memory(int64_t bytes) {
  if (bytes > sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) || !Meter::fits(bytes)) {
    errno = ENOMEM;
    return -1;
  }
  const int file = memfd_create("tutti", MFD_CLOEXEC);
  if (file < 0) return -1;
  const int failure = posix_fallocate(file, 0, bytes);
  if (failure == 0) return file;
  close(file);
  errno = failure;
  return -1;
}

void* map_memory(int file, int64_t bytes) {
  if (file < 0) return MAP_FAILED;
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
}

void close_file(int file) {
  if (file >= 0) close(file);
}

}  // namespace

SharedWindow::SharedWindow(int64_t bytes) : asked_(bytes) {
  const int64_t rounded = std::max<int64_t>(1, (bytes + kPage - 1) / kPage) * kPage;
  const int file = make_memory(rounded);
  if (file < 0) failure_ = errno;
  offer_ = {rounded, getpid(), file};
}

SharedWindow::SharedWindow(MPI_Comm host, int64_t bytes) : SharedWindow(bytes) {
  int ranks = 1, local = 0;
  MPI_Comm_size(host, &ranks);
  MPI_Comm_rank(host, &local);
  std::vector<Offer> offers(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&offer_, sizeof(Offer), MPI_BYTE, offers.data(), sizeof(Offer), MPI_BYTE, host),
            "MPI_Allgather");
  const int failure = map(offers, local);
  int worst = 0;
  check_mpi(MPI_Allreduce(&failure, &worst, 1, MPI_INT, MPI_MAX, host), "MPI_Allreduce");
  settle(worst);
}

int SharedWindow::map(const std::vector<Offer>& offers, int local_number) {
  local_ = local_number;
  segments_.resize(offers.size());
  for (int local = 0; local < std::ssize(offers) && failure_ == 0; ++local) {
    const Offer& offer = offers[local];
    const auto path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.file);
    const int file = local == local_ ? offer_.file : open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* data = map_memory(file, offer.bytes);
    if (data == MAP_FAILED)
      failure_ = errno;
    else
      segments_[local] = {static_cast<std::byte*>(data), offer.bytes};
    if (local != local_) close_file(file);
  }
  return failure_;
}

// The file may be closed, since all neighbours have mapped it.
void SharedWindow::settle(int failure) {
  close_own();
  if (failure == 0) return;
  unmap();
  throw OperatingError("cannot share " + std::to_string(asked_) +
                       " bytes of memory between the ranks of this host: " + std::strerror(failure));
}

SharedWindow::~SharedWindow() {
  close_own();
  unmap();
}

void SharedWindow::close_own() {
  close_file(offer_.file);
  offer_.file = -1;
}

void SharedWindow::unmap() {
  for (const Segment& segment : segments_) {
    if (segment.data) munmap(segment.data, segment.bytes);
  }
  segments_.clear();
}

bool SharedWindow::owns(const void* data, int64_t bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(data);
  const auto begin = reinterpret_cast<uintptr_t>(own());
  return first >= begin && first + bytes <= begin + segments_[local_].bytes;
}

namespace {

// Large enough to pay for polling the neighbours; small enough that a step of a collective takes less than
// 0.1 ms and that scratch takes a few MiB.
int64_t choose_chunk_bytes(int ranks) {
  constexpr int64_t kLeast = 16 << 10;
  constexpr int64_t kMost = 256 << 10;
  const int64_t even = (int64_t{1} << 20) / ranks / 64 * 64;
  return std::clamp(even, kLeast, kMost);
}

MpiComm make_host_comm(const MpiWorld& world, const HostLayout& layout, const std::vector<int>& ranks) {
  std::vector<int> here;
  for (int neighbour : layout.neighbours()) here.push_back(ranks[neighbour]);
  return world.make_comm(here);
}

}  // namespace

HostLayout HostLayout::of(const MpiWorld& world, const std::vector<int>& ranks) {
  std::vector<int> host_of;
  for (int rank : ranks) host_of.push_back(world.host_of()[rank]);
  const auto self = std::find(ranks.begin(), ranks.end(), world.rank());
  TUTTI_ASSERT(self != ranks.end(), "a rank may only make groups that include it");
  return HostLayout(std::move(host_of), static_cast<int>(self - ranks.begin()));
}

HostLayout::HostLayout(std::vector<int> host_of, int rank) : rank_(rank) {
  std::map<int, int> numbers;
  for (std::size_t member = 0; member < host_of.size(); ++member) {
    const auto [number, is_new] = numbers.try_emplace(host_of[member], static_cast<int>(numbers.size()));
    if (is_new) hosts_.emplace_back();
    std::vector<int>& neighbours = hosts_[number->second];
    host_of_.push_back(number->second);
    local_of_.push_back(static_cast<int>(neighbours.size()));
    neighbours.push_back(static_cast<int>(member));
  }
  for (int host = 0; host < hosts(); ++host) {
    subtrees_.push_back(subtrees_within({0, size()}, [&](int member) { return host_of_[member] == host; }));
  }
}

int HostLayout::delegate(int host, int owner) const {
  if (host_of_[owner] == host) return owner;
  return hosts_[host][local_of_[owner] % hosts_[host].size()];
}

MpiEndpoint::MpiEndpoint(const MpiWorld& world, std::vector<int> ranks, HostLayout layout)
    : ranks_(std::move(ranks)),
      layout_(std::move(layout)),
      messages_(world.make_comm(ranks_)),
      host_comm_(make_host_comm(world, layout_, ranks_)),
      chunk_bytes_(choose_chunk_bytes(layout_.size())),
      control_(host_comm_.get()),
      scratch_(host_comm_.get(), piece_bytes() * kBuffers) {}

std::byte* MpiEndpoint::scratch(int local, int64_t piece) const {
  return scratch_.segment(local) + piece % kBuffers * piece_bytes();
}

std::optional<uint64_t> MpiEndpoint::window_of(const void* data, int64_t bytes) const {
  for (uint64_t number = 0; number < windows_.size(); ++number) {
    const auto window = windows_[number].lock();
    if (window && window->owns(data, bytes)) return number;
  }
  return std::nullopt;
}

bool MpiEndpoint::may_use_scratch(uint64_t sequence) const {
  if (scratch_queue_.front() != sequence) return false;
  if (!last_in_scratch_) return true;
  for (int local = 0; local < locals(); ++local) {
    if (slot(local, *last_in_scratch_).left.get() <= *last_in_scratch_) return false;
  }
  return true;
}

void MpiEndpoint::release_scratch(uint64_t sequence, bool used) {
  std::erase(scratch_queue_, sequence);
  if (used) last_in_scratch_ = sequence;
}

}  // namespace tutti
