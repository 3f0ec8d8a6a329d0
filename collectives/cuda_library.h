#pragma once

#include <memory>
#include <string>

#include "collectives/group.h"

namespace tutti {

// Loads libtutti_cuda.so, which has all code that needs CUDA. Used only if a GPU is requested.
class CudaLibrary {
 public:
  // True if this machine has NVIDIA's driver. Cheap.
  static bool has_driver();

  // `path`: the library; "" looks beside libtutti.so or the executable. The library stays loaded, since
  // libtorch cannot unregister kernels. Throws UserError if that fails: not built, no driver, another build.
  explicit CudaLibrary(const std::string& path = "");

  int device_count() const;

  // Makes a NCCL group on the current CUDA device. `control` is a CPU group of the same ranks and must
  // outlive the new group. Collective.
  std::unique_ptr<Group> make_group(Group& control) const;

 private:
  void* symbol(const char* name) const;

  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace tutti
