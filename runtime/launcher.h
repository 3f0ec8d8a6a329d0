#pragma once

#include <optional>
#include <string>

namespace tutti {

// This process's rank from the environment of its launcher (mpirun, srun), known before MPI_Init; nullopt
// without a launcher.
std::optional<int> launched_rank();

// The number of ranks that mpirun started; 0 without mpirun.
int launched_world();

// The number of ranks that mpirun or srun started on this machine; 1 without a launcher.
int launched_neighbours();

// The variable that `tutti run` sets for ranks: it turns Ctrl-C into a signal that mpirun only forwards.
inline constexpr const char* kGentleStop = "TUTTI_GENTLE_STOP";

// Advice after Ctrl-C, which mpirun alone turns into SIGTERM, and soon into SIGKILL of its ranks.
std::string after_interrupt();

// The number of this process among the ranks that mpirun or srun started on this machine; 0 without a
// launcher.
int launched_local_rank();

// True if Slurm started several tasks, and no mpirun this process: a world of one rank is then a mistake.
bool is_one_of_slurms_tasks();
// The number of this task in the job step, from 0; 0 without Slurm.
int slurm_task();

}  // namespace tutti
