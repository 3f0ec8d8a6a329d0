#pragma once

#include <memory>
#include <string>

#include "collectives/group.h"

namespace tutti {

// libtutti_cuda.so, opened where a GPU is asked for. Everything of CUDA is behind it.
class CudaLibrary {
 public:
  // Whether this machine has NVIDIA's driver: worth opening the library at all. Cheap.
  static bool has_driver();

  // `path`: the library; beside libtutti.so (or the executable that holds it) when empty. It stays open as
  // long as the process lives, since libtorch registers kernels for good. Throws UserError saying why it
  // can't be used: not built, no driver, of another build.
  explicit CudaLibrary(const std::string& path = "");

  int device_count() const;

  // A group over NCCL on the current CUDA device; `control`, on the CPU, has the same ranks and outlives it.
  // Collective.
  std::unique_ptr<Group> make_group(Group& control) const;

 private:
  void* symbol(const char* name) const;

  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace tutti
