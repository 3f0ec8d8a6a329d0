// mpirun -np 2 collectives_bench: compares all_reduce of float32 by tutti and by MPI, alternating. Each rank
// writes its numbers first, as backward does, so that they are not in another rank's cache. Prints the
// slowest rank's time in microseconds, median and minimum. Waits with sched_yield.
#include <ATen/ops/zeros.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "collectives/mpi/group.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

namespace {

using namespace tutti;

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> microseconds;
};

void wait(const WorkPtr& work) {
  while (!work->done()) sched_yield();
}

void mpi_all_reduce(MPI_Comm comm, const at::Tensor& inout) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(inout.numel());
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, inout.data_ptr(), count, MPI_FLOAT, MPI_SUM, comm, &request),
            "MPI_Iallreduce");
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) sched_yield();
}

double slowest(MPI_Comm comm, double mine) {
  double most = 0;
  check_mpi(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return most;
}

// Runs several in a row if one is too short for the clock.
double time_of(const Contender& contender, MPI_Comm comm, int repeats) {
  const SystemClock clock;
  check_mpi(MPI_Barrier(comm), "MPI_Barrier");
  const TimePoint start = clock.now();
  for (int i = 0; i < repeats; ++i) contender.run();
  return slowest(comm, 1e6 * seconds(clock.now() - start) / repeats);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void compare(const MpiWorld& world, MpiGroup& ordered, MpiGroup& native, int64_t bytes) {
  const at::Tensor in_window = ordered.allocate(bytes).view(at::kFloat);
  const at::Tensor elsewhere = at::zeros({bytes / 4}, at::kFloat);
  std::vector<Contender> contenders = {
      {"writing alone", [&] { in_window.fill_(1); }, {}},
      {"ordered, window", [&] { wait(ordered.all_reduce(in_window.fill_(1), "bench")); }, {}},
      {"ordered, staged", [&] { wait(ordered.all_reduce(elsewhere.fill_(1), "bench")); }, {}},
      {"native", [&] { wait(native.all_reduce(elsewhere.fill_(1), "bench")); }, {}},
      {"MPI_Iallreduce", [&] { mpi_all_reduce(world.comm(), elsewhere.fill_(1)); }, {}},
  };
  const int repeats = static_cast<int>(std::clamp<int64_t>((4 << 20) / bytes, 1, 200));
  for (int round = 0; round < 21; ++round) {
    for (Contender& one : contenders) {
      const double took = time_of(one, world.comm(), repeats);
      if (round > 0) one.microseconds.push_back(took);
    }
  }
  if (world.rank() != 0) return;
  std::printf("%10ld bytes:", static_cast<long>(bytes));
  for (const Contender& one : contenders) {
    const double least = *std::min_element(one.microseconds.begin(), one.microseconds.end());
    std::printf("  %s %.1f (%.1f)", one.name.c_str(), median(one.microseconds), least);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  const SystemClock clock;
  MpiGroup ordered(world, clock, world.all_ranks(), Reduction::kOrdered);
  MpiGroup native(world, clock, world.all_ranks(), Reduction::kNative);
  for (const int64_t bytes : {64L, 4096L, 65536L, 1L << 20, 25L << 20, 80L << 20})
    compare(world, ordered, native, bytes);
}
