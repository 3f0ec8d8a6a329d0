#include "sim/environment/local_ranks.h"

#include <utility>

#include "collectives/local/group.h"
#include "sim/environment/local_transport.h"

namespace tutti {
namespace {

SimScheduler::Options switching(SimScheduler::Options scheduling, ProcessStateSwitch& states) {
  scheduling.on_switch = [&states](int rank) { states.enter(rank); };
  return scheduling;
}

}  // namespace

LocalRanks::LocalRanks(int size, SimScheduler::Options scheduling)
    : states_(size), environments_(size), scheduler_(switching(std::move(scheduling), states_)) {
  const auto fabric = LocalFabric::make(size);
  const LocalNetwork network(size);
  for (int rank = 0; rank < size; ++rank) {
    environments_[rank].groups = {fabric->group(rank)};
    environments_[rank].transport = network.transport(rank);
    environments_[rank].memory_slot = rank;
  }
}

}  // namespace tutti
