#pragma once

#include <string>
#include <vector>

namespace tutti {

// The executable of this process.
std::string own_program();

// mpirun with what ranks need, `options` of its own, then `program`: as root, with more ranks than cores, and
// on one host without an open port. mpirun is that of TUTTI_OPENMPI (the folder of an Open
// MPI), the one beside the MPI library that a run would load, or the one on PATH. Sets variables of this
// process's environment, for mpirun. Throws UserError.
std::vector<std::string> mpirun_command(const std::vector<std::string>& options,
                                        const std::vector<std::string>& program);

}  // namespace tutti
