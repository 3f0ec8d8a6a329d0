// Under mpirun: the rank that is named is killed while rank 1 waits for rank 2 in a group of both, and says
// who is gone. Rank 0 is in no group with rank 1: rank 2 may wait for it elsewhere.
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "collectives/mpi/group.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

int main(int argc, char** argv) {
  using namespace tutti;
  std::signal(SIGTERM, SIG_IGN);  // mpirun's, once a rank is lost
  const int victim = std::atoi(argv[1]);
  MpiWorld world(&argc, &argv);
  const SystemClock clock;
  std::unique_ptr<MpiGroup> group;
  if (world.rank() > 0) group = std::make_unique<MpiGroup>(world, clock, std::vector<int>{1, 2});
  if (group) wait_until_ready(*group);
  if (world.rank() == victim) std::raise(SIGKILL);
  while (world.rank() != 1) pause();
  try {
    const WorkPtr work = group->barrier("the end");
    while (!work->done()) sched_yield();
  } catch (const CollectiveError& error) {
    std::cerr << error.what() << std::endl;
    world.abort(1);
  }
}
