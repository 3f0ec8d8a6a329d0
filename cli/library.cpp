#include "cli/library.h"

#include <dlfcn.h>

#include <filesystem>

#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

fs::path library_path() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path beside = folder / "libtutti.so";
  const fs::path installed = folder / ".." / "lib" / "libtutti.so";
  return fs::exists(beside) || !fs::exists(installed) ? beside : installed;
}

// Names are global because Open MPI opens its components, and tutti its plugins, against them.
void* open_library() {
  void* library = dlopen(library_path().c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!library) throw OperatingError(std::string("cannot open libtutti.so: ") + dlerror());
  return library;
}

}  // namespace

int run_in_library(const TuttiRequest& request) {
  auto* run = reinterpret_cast<decltype(&tutti_run)>(dlsym(open_library(), "tutti_run"));
  if (!run) throw OperatingError(std::string("libtutti.so is of another build: ") + dlerror());
  return run(&request);
}

}  // namespace tutti
