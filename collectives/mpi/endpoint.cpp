#include "collectives/mpi/endpoint.h"

#include <algorithm>
#include <map>

#include "runtime/error.h"

namespace tutti {
namespace {

// Large enough to pay for polling the neighbours; small enough that a step of a collective takes less than
// 0.1 ms and that scratch takes a few MiB.
int64_t choose_chunk_bytes(int ranks) {
  constexpr int64_t kLeast = 16 << 10;
  constexpr int64_t kMost = 256 << 10;
  const int64_t even = (int64_t{1} << 20) / ranks / 64 * 64;
  return std::clamp(even, kLeast, kMost);
}

HostLayout make_layout(const MpiWorld& world, const std::vector<int>& ranks) {
  std::vector<int> host_of;
  for (int rank : ranks) host_of.push_back(world.host_of()[rank]);
  const auto self = std::find(ranks.begin(), ranks.end(), world.rank());
  TUTTI_ASSERT(self != ranks.end(), "a rank may only make groups that include it");
  return HostLayout(std::move(host_of), static_cast<int>(self - ranks.begin()));
}

MpiComm make_host_comm(const MpiWorld& world, const HostLayout& layout, const std::vector<int>& ranks) {
  std::vector<int> here;
  for (int neighbour : layout.neighbours()) here.push_back(ranks[neighbour]);
  return world.make_comm(here);
}

}  // namespace

HostLayout::HostLayout(std::vector<int> host_of, int rank) : rank_(rank) {
  std::map<int, int> numbers;
  for (std::size_t member = 0; member < host_of.size(); ++member) {
    const auto [found, is_new] = numbers.try_emplace(host_of[member], static_cast<int>(numbers.size()));
    if (is_new) hosts_.emplace_back();
    std::vector<int>& neighbours = hosts_[found->second];
    host_of_.push_back(found->second);
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

MpiEndpoint::MpiEndpoint(const MpiWorld& world, std::vector<int> ranks)
    : ranks_(std::move(ranks)),
      layout_(make_layout(world, ranks_)),
      messages_(world.make_comm(ranks_)),
      guards_(messages_.duplicate()),
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
