#include "runtime/launcher.h"

#include <algorithm>
#include <cstdlib>

namespace tutti {

std::optional<int> launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return std::nullopt;
}

int launched_world() {
  const char* world = std::getenv("OMPI_COMM_WORLD_SIZE");
  return world ? std::atoi(world) : 0;
}

int launched_neighbours() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_TASKS_PER_NODE"})  // "8", "8(x2)"
    if (const char* ranks = std::getenv(name); ranks && launched_rank()) return std::max(1, std::atoi(ranks));
  return 1;
}

int launched_local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(name); rank && launched_rank()) return std::max(0, std::atoi(rank));
  return 0;
}

std::string after_interrupt() {
  if (launched_world() == 0 || std::getenv(kGentleStop))
    return "Ctrl-C twice ends it at once, without that checkpoint";
  return "after a Ctrl-C mpirun kills the ranks a second later, ready or not; `tutti stop` gives them time";
}

bool is_one_of_slurms_tasks() {
  const char* tasks = std::getenv("SLURM_NTASKS");
  return tasks && std::atoi(tasks) > 1 && launched_world() == 0;
}

int slurm_task() {
  const char* task = std::getenv("SLURM_PROCID");
  return task ? std::atoi(task) : 0;
}

}  // namespace tutti
