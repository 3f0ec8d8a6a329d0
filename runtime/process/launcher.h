#pragma once

#include <optional>
#include <string>

namespace tutti {

// This process's place among those that a launcher (mpirun, srun) started together, by its environment;
// nothing when there was none. MPI says the same, but later and for a price.
std::optional<int> launched_rank();

// This machine's name.
std::string host_name();

}  // namespace tutti
