#include "collectives/mpi/shared_window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "collectives/mpi/world.h"
#include "runtime/error.h"
#include "tensors/meter.h"

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

// Describes a rank's segment to its neighbours.
struct SharedWindow::Offer {
  int64_t bytes = 0;
  int32_t process = 0;
  int32_t file = -1;
};

SharedWindow::SharedWindow(MPI_Comm host, int64_t bytes) {
  int ranks = 1;
  MPI_Comm_size(host, &ranks);
  MPI_Comm_rank(host, &local_);
  const int64_t rounded = std::max<int64_t>(1, (bytes + kPage - 1) / kPage) * kPage;
  const int own_file = make_memory(rounded);
  int failure = own_file < 0 ? errno : 0;

  const Offer mine{rounded, getpid(), own_file};
  std::vector<Offer> offers(ranks);
  check_mpi(MPI_Allgather(&mine, sizeof(Offer), MPI_BYTE, offers.data(), sizeof(Offer), MPI_BYTE, host),
            "MPI_Allgather");
  segments_.resize(ranks);
  for (int local = 0; local < ranks && failure == 0; ++local) {
    const Offer& offer = offers[local];
    const auto path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.file);
    const int file = local == local_ ? own_file : open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* data = map_memory(file, offer.bytes);
    if (data == MAP_FAILED)
      failure = errno;
    else
      segments_[local] = {static_cast<std::byte*>(data), offer.bytes};
    if (local != local_) close_file(file);
  }
  int worst = 0;  // this all-reduce is also a barrier: afterwards the files may be closed
  check_mpi(MPI_Allreduce(&failure, &worst, 1, MPI_INT, MPI_MAX, host), "MPI_Allreduce");
  close_file(own_file);
  if (worst == 0) return;
  unmap();
  throw OperatingError("cannot share " + std::to_string(bytes) +
                       " bytes of memory between the ranks of this host: " + std::strerror(worst));
}

SharedWindow::~SharedWindow() { unmap(); }

void SharedWindow::unmap() {
  for (const Segment& segment : segments_) {
    if (segment.data) munmap(segment.data, segment.bytes);
  }
}

bool SharedWindow::owns(const void* data, int64_t bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(data);
  const auto begin = reinterpret_cast<uintptr_t>(own());
  return first >= begin && first + bytes <= begin + segments_[local_].bytes;
}

}  // namespace tutti
