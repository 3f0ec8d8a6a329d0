#include "actors/local_ranks.h"

#include <utility>

#include "collectives/device/groups.h"
#include "collectives/local/transport.h"
#include "collectives/local/world.h"

namespace tutti {
namespace {

TokenScheduler::Options switching(TokenScheduler::Options scheduling, ProcessStateSwitch& states) {
  scheduling.on_switch = [&states](int rank) { states.enter(rank); };
  return scheduling;
}

}  // namespace

LocalRanks::LocalRanks(const Job& job, TokenScheduler::Options scheduling)
    : states_(job.world),
      environments_(static_cast<std::size_t>(job.world)),
      scheduler_(switching(std::move(scheduling), states_)) {
  const Mesh mesh = job.mesh();
  const auto world = LocalWorld::make(mesh.size());
  const LocalNetwork network(mesh.size());
  const auto communicators = communicators_of(job.devices, job.settings.collectives.backend, mesh.size());
  for (int rank = 0; rank < mesh.size(); ++rank) {
    RankEnvironment& environment = environments_[static_cast<std::size_t>(rank)];
    const auto factory = world->factory(rank);
    const auto make = [&](const std::vector<int>& ranks) { return factory->make(ranks); };
    devices_.push_back(job.device(rank));
    states_.set_device(rank, devices_.back().where);
    environment.groups = groups_on_device(make_groups(make(mesh.ranks()), mesh, rank, make), devices_.back(),
                                          make, communicators);
    environment.transport = network.transport(rank);
    environment.memory_slot = rank;
  }
}

LocalRanks::~LocalRanks() {
  for (const RankEnvironment& environment : environments_) abandon(environment.groups);
  for (const Device& device : devices_) device.settle();
}

}  // namespace tutti
