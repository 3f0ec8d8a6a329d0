#pragma once

#include <optional>
#include <string>

namespace tutti {

// What has to agree between libtutti.so and what is loaded beside it, "tutti 0.1.0, libtorch 2.11,
// GNU 12.2.0"; `elsewhere` where this code does not run in libtutti.so.
std::string build_stamp(const std::string& elsewhere);

// The same with what the code came from: "..., commit 2c63f0a", "-dirty" behind it where files were changed;
// "unknown" where it was built outside of git.
std::string build_and_commit(const std::string& elsewhere);

// This process's place among those that a launcher (mpirun, srun) started together, by its environment;
// nothing when there was none. MPI says the same, but later and for a price.
std::optional<int> launched_rank();

// This machine's name.
std::string host_name();

// If ranks meet the same error at about the same time, one reports it: the first, which keeps a file that all
// see locked, and lingers for the others before it ends. A file that cannot be locked keeps nobody from
// reporting. Both may be called by a signal handler.
bool first_to_tell(const char* path);
void linger();

}  // namespace tutti
