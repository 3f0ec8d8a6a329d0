#include "actors/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "actors/process_watch.h"
#include "actors/run_report.h"
#include "actors/world.h"
#include "collectives/local_group.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/transport.h"
#include "collectives/mpi/world.h"
#include "collectives/text_exchange.h"
#include "runtime/lone_transport.h"
#include "runtime/thread_scheduler.h"
#include "tensors/meter.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

// One rank's connection to the others, whatever carries it.
struct Connection {
  Group& group;
  Transport& transport;
  std::string host;
};

bool under_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Rank 0's draw of a seed and a nonce, the same on all ranks.
std::pair<uint64_t, std::string> common_draw(Group& group) {
  std::random_device entropy;
  const uint64_t mine = (uint64_t{entropy()} << 32 | entropy()) >> 1;
  const std::string drawn = exchange_texts(group, std::to_string(mine))[0];
  return {std::stoull(drawn), drawn};
}

// A job that fails on any rank fails on all with one message; the rank is named where others could do it.
Job agreed_job(const Setting& recipe, const LaunchOptions& options, const Connection& connection) {
  const auto [seed, nonce] = common_draw(connection.group);
  Job job;
  std::string error;
  try {
    job = make_job(recipe,
                   {connection.group.size(), options.run_dir, options.resume, seed & 0xffffffff, nonce});
  } catch (const UserError& what) {
    error = what.what();
  }
  const auto errors = exchange_texts(connection.group, error);
  for (std::size_t r = 0; r < errors.size(); ++r) {
    if (errors[r].empty()) continue;
    const bool everywhere =
        std::all_of(errors.begin(), errors.end(), [&](auto& e) { return e == errors[r]; });
    throw UserError(everywhere ? errors[r] : "rank " + std::to_string(r) + ": " + errors[r]);
  }
  return job;
}

// Ends the process: threads or other ranks may be stuck, so nothing is unwound.
[[noreturn]] void end_with(int exit_code) {
  std::fflush(nullptr);
  _exit(exit_code);
}

int run_rank(const Setting& recipe, const LaunchOptions& options, const Connection& connection) {
  const int rank = connection.group.rank();
  Meter::install();
  set_compute_threads(static_cast<int>(recipe.at("device").at("threads").integer()));
  const Job job = agreed_job(recipe, options, connection);
  PosixDisk disk;
  SystemClock clock;
  RingRecorder recorder;
  const auto log = make_log(job.run_dir + "/log/rank-" + std::to_string(rank) + ".log", rank, rank == 0);
  if (rank == 0) log->info(batch_identity(job));
  ThreadScheduler scheduler;
  RunOutcome outcome;
  const RankPlace place{rank, 0, connection.host, prints_to_terminal(), false, process_started_s()};
  const Cast cast = add_rank(scheduler, job, place,
                             {connection.group, connection.transport, disk, clock, *log, recorder}, outcome);
  const ProcessWatch watch(scheduler, cast.supervisor, rank);
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    if (outcome.refused) throw;
    log->info(error.what());
    log_last_happenings(*log, recorder, clock.now());
    std::fprintf(stderr, "error: rank %d: %s\n", rank, error.what());
    end_with(dynamic_cast<const UserError*>(&error) ? 2 : 1);
  }
  return outcome.exit_code;
}

int train_under_mpi(const Setting& recipe, const LaunchOptions& options) {
  MpiWorld world(nullptr, nullptr);
  const SystemClock clock;
  std::vector<int> all(world.size());
  for (int r = 0; r < world.size(); ++r) all[r] = r;
  const bool native = recipe.at("collectives").at("reduction").text() == "native";
  MpiGroup group(world, clock, all, native ? Reduction::kNative : Reduction::kOrdered);
  MpiTransport transport(world);
  return run_rank(recipe, options, {group, transport, world.host_name(world.rank())});
}

int train_alone(const Setting& recipe, const LaunchOptions& options) {
  const auto group = LocalFabric::make(1)->group(0);
  LoneTransport transport;
  return run_rank(recipe, options, {*group, transport, host_name()});
}

}  // namespace

int train(const Setting& recipe, const LaunchOptions& options) {
  hold_stop_signals();
  const Setting& device = recipe.at("device").at("kind");
  if (device.text() == "gpu") device.fail("this build trains on CPUs");
  const Setting& backend = recipe.at("collectives").at("backend");
  if (backend.text() == "nccl") backend.fail("NCCL needs GPUs, and this build trains on CPUs");
  if (backend.text() == "mpi" || (backend.text() == "auto" && under_mpirun()))
    return train_under_mpi(recipe, options);
  if (under_mpirun() &&
      std::string(std::getenv("OMPI_COMM_WORLD_SIZE") ? std::getenv("OMPI_COMM_WORLD_SIZE") : "1") != "1")
    backend.fail("expected mpi or auto: local joins the ranks of one process, and mpirun started several");
  return train_alone(recipe, options);
}

}  // namespace tutti
