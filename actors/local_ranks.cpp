#include "actors/local_ranks.h"

#include <utility>

#include "collectives/local/transport.h"
#include "collectives/local/world.h"

namespace tutti {
namespace {

TokenScheduler::Options switching(TokenScheduler::Options scheduling, ProcessStateSwitch& states) {
  scheduling.on_switch = [&states](int rank) { states.enter(rank); };
  return scheduling;
}

}  // namespace

LocalRanks::LocalRanks(const Mesh& mesh, TokenScheduler::Options scheduling)
    : states_(mesh.size()),
      environments_(static_cast<std::size_t>(mesh.size())),
      scheduler_(switching(std::move(scheduling), states_)) {
  const auto world = LocalWorld::make(mesh.size());
  const LocalNetwork network(mesh.size());
  for (int rank = 0; rank < mesh.size(); ++rank) {
    RankEnvironment& environment = environments_[static_cast<std::size_t>(rank)];
    const auto factory = world->factory(rank);
    environment.groups = make_groups(factory->make(mesh.ranks()), mesh, rank,
                                     [&](const std::vector<int>& ranks) { return factory->make(ranks); });
    environment.transport = network.transport(rank);
    environment.memory_slot = rank;
  }
}

}  // namespace tutti
