#include "collectives/mpi/meeting.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "collectives/group.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr int kTag = 1;
constexpr const char* kLabel = "the ranks of a group meet";

}  // namespace

GroupMeeting::GroupMeeting(const MpiWorld& world, const std::vector<int>& ranks)
    : world_(world),
      group_(XXH3_64bits(ranks.data(), ranks.size() * sizeof(int))),
      guests_(ranks.size() - 1) {
  auto guest = guests_.begin();
  for (const int rank : ranks) {
    if (rank == world.rank()) continue;
    guest->rank = rank;
    guest->coming.receive(world.comm(), &guest->group, sizeof guest->group, rank, kTag);
    said_.send(world.comm(), &group_, sizeof group_, rank, kTag);
    ++guest;
  }
}

bool GroupMeeting::done() {
  bool all = said_.done();
  for (Guest& guest : guests_) {
    if (!guest.here && guest.coming.done()) {
      guest.here = true;
      if (guest.group != group_)
        throw CollectiveError("ranks make different groups: rank " + std::to_string(world_.rank()) +
                              " and rank " + std::to_string(guest.rank));
    }
    all = all && guest.here;
  }
  if (all) return true;
  if (const auto lost = world_.lost_peer()) {
    CollectiveHeader header;
    std::snprintf(header.label, sizeof header.label, "%s", kLabel);
    throw LostRankError(*lost, header);
  }
  return false;
}

std::vector<int> GroupMeeting::late() const {
  std::vector<int> ranks;
  for (const Guest& guest : guests_)
    if (!guest.here) ranks.push_back(guest.rank);
  return ranks;
}

}  // namespace tutti
