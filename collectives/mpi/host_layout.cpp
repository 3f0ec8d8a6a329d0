#include "collectives/mpi/host_layout.h"

#include <map>

namespace tutti {

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

}  // namespace tutti
