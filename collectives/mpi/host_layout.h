#pragma once

#include <vector>

#include "collectives/rank_tree.h"

namespace tutti {

// How a group's ranks lie on hosts, and who speaks for a host. A host need not hold contiguous ranks: then it
// has more subtrees, and the sums keep their bits.
class HostLayout {
 public:
  // `host_of`: a number per rank of the group, equal where ranks share memory.
  HostLayout(std::vector<int> host_of, int rank);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(hosts_.size()); }
  int host() const { return host_of_[rank_]; }
  int host_of(int rank) const { return host_of_[rank]; }
  bool here(int rank) const { return host_of_[rank] == host(); }

  // The ranks of a host, ascending; a rank's place in its host's list is its local number.
  const std::vector<int>& ranks_of(int host) const { return hosts_[host]; }
  const std::vector<int>& neighbours() const { return hosts_[host()]; }
  int local_of(int rank) const { return local_of_[rank]; }

  // Who on `host` sends that host's part of what rank `owner` sums, and takes in the result: the owner itself
  // at home, else the rank with its local number, so that the work is spread alike everywhere.
  int delegate(int host, int owner) const;

  // The subtrees of the ordered sum over the whole group that `host` can sum by itself.
  const std::vector<RankRange>& subtrees(int host) const { return subtrees_[host]; }

 private:
  int rank_;
  std::vector<int> host_of_;  // renumbered by lowest rank
  std::vector<int> local_of_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::vector<RankRange>> subtrees_;
};

}  // namespace tutti
