// Under mpirun: rank 1 is killed while the others wait for it, and they say who is gone.
#include <sched.h>

#include <csignal>
#include <iostream>

#include "collectives/mpi/group.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

int main(int argc, char** argv) {
  using namespace tutti;
  std::signal(SIGTERM, SIG_IGN);  // mpirun's, once a rank is lost
  MpiWorld world(&argc, &argv);
  const SystemClock clock;
  MpiGroup group(world, clock, world.all_ranks(), Reduction::kOrdered);
  if (world.rank() == 1) std::raise(SIGKILL);
  try {
    const WorkPtr work = group.barrier("the end");
    while (!work->done()) sched_yield();
  } catch (const CollectiveError& error) {
    std::cerr << error.what() << std::endl;
    world.abort(1);
  }
}
