#pragma once

#include <optional>

namespace tutti {

// This process's rank from the environment of its launcher (mpirun, srun), known before MPI_Init; nullopt
// without a launcher.
std::optional<int> launched_rank();

}  // namespace tutti
