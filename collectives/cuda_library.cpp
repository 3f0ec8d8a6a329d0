#include "collectives/cuda_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/error.h"
#include "runtime/process/this_process.h"

namespace tutti {
namespace {

std::string path_beside_this_code() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&path_beside_this_code), &info);
  return std::filesystem::absolute(info.dli_fname).parent_path() / "libtutti_cuda.so";
}

}  // namespace

bool CudaLibrary::has_driver() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

CudaLibrary::CudaLibrary(const std::string& path) : path_(path.empty() ? path_beside_this_code() : path) {
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle_ == nullptr) {
    throw UserError(std::string("no GPU can be used: ") + dlerror() +
                    " (built with -DTUTTI_CUDA=OFF, or without nvcc?)");
  }
  const std::string theirs = reinterpret_cast<const char* (*)()>(symbol("tutti_cuda_build_stamp"))();
  const std::string ours = build_stamp(theirs);
  if (theirs != ours) throw UserError(path_ + " is of another build: '" + theirs + "', not '" + ours + "'");
}

int CudaLibrary::device_count() const {
  return reinterpret_cast<int (*)()>(symbol("tutti_cuda_device_count"))();
}

std::unique_ptr<Group> CudaLibrary::make_group(Group& control) const {
  const auto make = reinterpret_cast<Group* (*)(Group*)>(symbol("tutti_cuda_make_group"));
  return std::unique_ptr<Group>(make(&control));
}

void* CudaLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) throw UserError(path_ + " has no " + name + ": it is of another build");
  return found;
}

}  // namespace tutti
