#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "recipe/setting.h"
#include "tensors/device.h"

namespace tutti {

// A library with all code for one kind of device (collectives/device_entry.h), which is loaded only for a
// recipe with that device. The library stays loaded, since libtorch cannot unregister kernels.
class DeviceLibrary {
 public:
  // True if this machine has NVIDIA's driver. Cheap.
  static bool has_gpu_driver();

  // "cuda": libtutti_cuda.so beside libtutti.so or the executable; "test": libtutti_test_device.so there, or
  // where the loader finds it. CUDA's allocator is made to keep memory in segments that grow
  // (PYTORCH_ALLOC_CONF), which leaves fewer gaps, unless the environment says otherwise. Throws UserError if
  // the library cannot be loaded: not built, no driver, of another build.
  static std::shared_ptr<const DeviceLibrary> load(const std::string& kind);

  // The library for a [device] section; null: the CPU. "auto" takes the CPU without a driver, a GPU or this
  // build's part for GPUs. Throws UserError with the section's key.
  static std::shared_ptr<const DeviceLibrary> of(const Setting& section);

  // Throws UserError as `load`.
  explicit DeviceLibrary(const std::string& path);

  int device_count() const;
  bool is_gpu() const;  // false: the tests' own device

  // Rank `rank` of this process or machine, counted from 0: ranks share devices if ranks outnumber devices.
  // `memory_slot`: of the meter (Device). Throws UserError without devices.
  Device device(int rank, int memory_slot) const;

  // See collectives/device_entry.h.
  CommunicatorId make_id() const;
  std::unique_ptr<Communicator> connect(const CommunicatorId& id, const Device& device, int rank,
                                        const std::vector<int>& ranks) const;

 private:
  template <class Function>
  Function* symbol(const char* name) const;

  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace tutti
