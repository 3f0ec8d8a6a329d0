// Under mpirun: rank 2 is killed while rank 1 waits for it in a group of both, and says who is gone.
#include <sched.h>
#include <unistd.h>

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
  while (world.rank() == 0) pause();
  MpiGroup group(world, clock, {1, 2}, Reduction::kOrdered);
  if (world.rank() == 2) std::raise(SIGKILL);
  try {
    const WorkPtr work = group.barrier("the end");
    while (!work->done()) sched_yield();
  } catch (const CollectiveError& error) {
    std::cerr << error.what() << std::endl;
    world.abort(1);
  }
}
