#include "tests/device/rendezvous.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>

namespace tutti::test_device {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{1} << 20;
constexpr std::size_t kOutboxBytes = std::size_t{256} << 20;  // pages that are never written cost nothing
constexpr std::size_t kBytes = kHeadBytes + 2 * Rendezvous::kMostRanks * kOutboxBytes;
static_assert(sizeof(Rendezvous::Rank) * Rendezvous::kMostRanks <= kHeadBytes);

}  // namespace

bool Call::matches(const Call& other) const {
  return kind == other.kind && dtype == other.dtype && root == other.root && count == other.count;
}

std::string Call::text() const {
  constexpr std::array<const char*, 4> kNames{"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  return std::string(kNames[static_cast<std::size_t>(kind)]) + " of " + std::to_string(count) + " " +
         c10::toString(static_cast<c10::ScalarType>(dtype));
}

CommunicatorId Rendezvous::make() {
  const int file = memfd_create("communicator of the test device", MFD_CLOEXEC);
  TORCH_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(kBytes)) == 0, "no memory for a communicator");
  CommunicatorId id;
  std::snprintf(id.bytes, sizeof id.bytes, "/proc/%d/fd/%d", getpid(), file);
  return id;
}

Rendezvous::Rendezvous(const CommunicatorId& id, int rank, int size, int world_rank)
    : rank_(rank), size_(size) {
  TORCH_CHECK(size <= kMostRanks, "the test device joins ", kMostRanks, " ranks at most");
  int process = 0;
  if (rank == 0) std::sscanf(id.bytes, "/proc/%d/fd/%d", &process, &file_);
  const int file = open(id.bytes, O_RDWR | O_CLOEXEC);
  TORCH_CHECK(file >= 0, "no communicator ", id.bytes);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  TORCH_CHECK(memory != MAP_FAILED, "no address space for a communicator");
  memory_ = static_cast<std::byte*>(memory);
  own().world_rank = world_rank;
  own().process = getpid();
}

Rendezvous::~Rendezvous() {
  munmap(memory_, kBytes);
  if (file_ >= 0) close(file_);
}

// Zeroed memory is a rank that has not joined.
Rendezvous::Rank& Rendezvous::of(int rank) const {
  return *std::launder(reinterpret_cast<Rank*>(memory_ + sizeof(Rank) * static_cast<std::size_t>(rank)));
}

bool Rendezvous::all_joined() const {
  for (int one = 0; one < size_; ++one)
    if (of(one).process == 0) return false;
  return true;
}

bool Rendezvous::all_sent(uint64_t number) const {
  for (int one = 0; one < size_; ++one)
    if (of(one).sent <= number) return false;
  return true;
}

uint64_t Rendezvous::wanted_by_others() const {
  uint64_t most = 0;
  for (int one = 0; one < size_; ++one)
    if (one != rank_) most = std::max<uint64_t>(most, of(one).wanted);
  return most;
}

std::byte* Rendezvous::outbox(int rank, uint64_t number, std::size_t bytes) const {
  TORCH_CHECK(bytes <= kOutboxBytes, "the test device joins ", kOutboxBytes, " bytes at most, not ", bytes);
  const std::size_t place = 2 * static_cast<std::size_t>(rank) + number % 2;
  return memory_ + kHeadBytes + place * kOutboxBytes;
}

}  // namespace tutti::test_device
