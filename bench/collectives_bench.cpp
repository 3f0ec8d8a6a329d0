// mpirun -np 2 collectives_bench: compares all_reduce of float32 by tutti and by MPI, alternating. Each rank
// writes its numbers first, as backward does, so that they are not in another rank's cache. Then compares
// gathers and reductions of 24 tensors in two cuts: every rank has equal rows of each tensor, or one chunk of
// them all. Prints the slowest rank's time in microseconds, median and minimum. Waits with sched_yield.
#include <ATen/ops/zeros.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
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

void measure(const MpiWorld& world, const std::string& title, int repeats,
             std::vector<Contender> contenders) {
  for (int round = 0; round < 21; ++round) {
    for (Contender& one : contenders) {
      const double took = time_of(one, world.comm(), repeats);
      if (round > 0) one.microseconds.push_back(took);
    }
  }
  if (world.rank() != 0) return;
  std::printf("%s:", title.c_str());
  for (const Contender& one : contenders) {
    const double least = *std::min_element(one.microseconds.begin(), one.microseconds.end());
    std::printf("  %s %.1f (%.1f)", one.name.c_str(), median(one.microseconds), least);
  }
  std::printf("\n");
}

void compare_sums(const MpiWorld& world, MpiGroup& ordered, int64_t bytes) {
  const at::Tensor in_window = wait_for_memory(ordered, bytes).view(at::kFloat);
  const at::Tensor elsewhere = at::zeros({bytes / 4}, at::kFloat);
  measure(world, std::to_string(bytes) + " bytes", std::clamp<int>((4 << 20) / bytes, 1, 200),
          {{"writing alone", [&] { in_window.fill_(1); }, {}},
           {"ordered, window", [&] { wait(ordered.all_reduce(in_window.fill_(1), "bench")); }, {}},
           {"ordered, staged", [&] { wait(ordered.all_reduce(elsewhere.fill_(1), "bench")); }, {}},
           {"MPI_Iallreduce", [&] { mpi_all_reduce(world.comm(), elsewhere.fill_(1)); }, {}}});
}

constexpr int64_t kTensors = 24;
constexpr int64_t kRowsOfRank = 200000;  // numbers of each tensor

// Each rank has its rows of every tensor.
CutPtr cut_by_rows(int ranks) {
  std::vector<std::vector<ElementRange>> parts(ranks);
  for (int64_t block = 0; block < kTensors * ranks; ++block)
    parts[block % ranks].push_back({block * kRowsOfRank, (block + 1) * kRowsOfRank});
  return std::make_shared<const Cut>(parts);
}

void compare_cuts(const MpiWorld& world, MpiGroup& group, const std::string& name, bool in_window) {
  const int64_t part_size = kTensors * kRowsOfRank;
  const auto memory = [&](int64_t size) {
    return in_window ? wait_for_memory(group, size * 4).view(at::kFloat) : at::zeros({size}, at::kFloat);
  };
  const at::Tensor part = memory(part_size).fill_(1);
  const at::Tensor whole = memory(part_size * group.size()).fill_(1);
  const CutPtr even = Cut::even(group.size(), part_size), rows = cut_by_rows(group.size());
  const auto gather = [&](const CutPtr& cut) { wait(group.all_gather(part, whole, cut, "bench")); };
  const auto scatter = [&](const CutPtr& cut) { wait(group.reduce_scatter(whole, part, cut, "bench")); };
  measure(world, name, 1,
          {{"all_gather", [&] { gather(even); }, {}},
           {"by rows", [&] { gather(rows); }, {}},
           {"reduce_scatter", [&] { scatter(even); }, {}},
           {"by rows", [&] { scatter(rows); }, {}}});
}

}  // namespace

int main(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  const SystemClock clock;
  MpiGroup ordered(world, clock, world.all_ranks());
  wait_until_ready(ordered);
  for (const int64_t bytes : {64L, 4096L, 65536L, 1L << 20, 25L << 20, 80L << 20})
    compare_sums(world, ordered, bytes);
  compare_cuts(world, ordered, "24 tensors, window", true);
  compare_cuts(world, ordered, "24 tensors, staged", false);
}
