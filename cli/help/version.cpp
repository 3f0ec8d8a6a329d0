#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cli/commands.h"
#include "io/hdf5/hdf5_listing.h"
#include "runtime/text.h"

extern "C" const char* tutti_commit();

namespace tutti {
namespace {

// The vector instructions that ATen chooses, by the rule of ATen's DispatchStub.
std::string cpu_capability() {
  const char* variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string name = variable ? lower_case(variable) : "";
  if (name == "avx512" || name == "avx2" || name == "default")
    return name == "default" ? "DEFAULT" : name == "avx2" ? "AVX2" : "AVX512";
#if defined(__x86_64__)
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return "AVX512";
  if (fma && __builtin_cpu_supports("avx2")) return "AVX2";
#endif
  return "DEFAULT";
}

// "Open MPI v4.1.4" of the library that a run would load, without starting MPI.
std::string mpi_version() {
  void* library = dlopen(TUTTI_MPI_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  using GetVersion = int (*)(char*, int*);
  auto get = library ? reinterpret_cast<GetVersion>(dlsym(library, "MPI_Get_library_version")) : nullptr;
  if (!get) return TUTTI_MPI_LIBRARY " is not found here";
  std::array<char, 8192> text{};
  int length = 0;
  get(text.data(), &length);
  const std::string whole = text.data();
  return whole.substr(0, whole.find_first_of(",\n"));
}

std::string commit() {
  const std::string known = tutti_commit();
  return known == "unknown" ? "unknown: built from sources without git's history" : known;
}

}  // namespace

std::string version_text() {
  std::string text = "tutti " TUTTI_VERSION "\n";
  const auto add = [&](const char* name, const std::string& value) {
    text += std::string(name) + value + '\n';
  };
  add("commit    ", commit());
  add("compiler  ", TUTTI_COMPILER);
  add("libtorch  ", TUTTI_TORCH_RELEASE);
  add("MPI       ", mpi_version());
  add("HDF5      ", hdf5_version());
  add("CPU       ", cpu_capability());
#ifdef TUTTI_CUDA_RELEASE
  add("CUDA      ", TUTTI_CUDA_RELEASE);
  add("NCCL      ", TUTTI_NCCL_RELEASE);
#else
  add("CUDA      ", "not built");
#endif
  text.pop_back();  // CLI11 ends the line
  return text;
}

}  // namespace tutti
