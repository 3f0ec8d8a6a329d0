#include "collectives/mpi/group_factory.h"

#include "collectives/local/group.h"
#include "collectives/mpi/group.h"

namespace tutti {

std::unique_ptr<Group> MpiGroupFactory::make(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return LocalFabric::make(ranks)->group(0);
  return std::make_unique<MpiGroup>(world_, clock_, ranks, reduction_);
}

}  // namespace tutti
