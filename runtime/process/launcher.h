#pragma once

#include <optional>
#include <string>

namespace tutti {

// This process's place among those that a launcher (mpirun, srun) started together, by its environment;
// nothing when there was none. MPI says the same, but later and for a price.
std::optional<int> launched_rank();

// This machine's name.
std::string host_name();

// Of ranks that meet the same error at about the same time one tells it: the first, which keeps a file that
// all see locked, and lingers for the others before it ends. What cannot be locked keeps nobody from telling.
// Both may be called by a handler of a signal.
bool first_to_tell(const char* path);
void linger();

}  // namespace tutti
