#pragma once

#include <cstdint>
#include <vector>

#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"

namespace tutti {

// The ranks of a group that is to be made. Each rank says that it has come, in one small message to each
// other rank. MPI makes groups in blocking calls; after the meeting these calls wait for nobody who is not
// there.
class GroupMeeting {
 public:
  // `ranks`: of the world, with this rank. The world must outlive this.
  GroupMeeting(const MpiWorld& world, const std::vector<int>& ranks);
  GroupMeeting(const GroupMeeting&) = delete;

  // True if all ranks have come. Never blocks. Throws CollectiveError if a rank comes to make another group,
  // and LostRankError if the process of a rank on this host has ended.
  bool done();
  std::vector<int> late() const;  // ranks of the world that have not come

 private:
  struct Guest {
    int rank = 0;
    uint64_t group = 0;  // hash of the ranks of the group that it makes
    Requests coming = {};
    bool here = false;
  };

  const MpiWorld& world_;
  uint64_t group_;
  std::vector<Guest> guests_;  // the other ranks; does not grow, since MPI writes into it
  Requests said_;
};

}  // namespace tutti
