#include <ATen/Context.h>
#include <c10/core/Device.h>

#include <vector>

#include "collectives/device_entry.h"
#include "collectives/nccl/group.h"
#include "tensors/cuda/device.h"

extern "C" int tutti_device_type() { return static_cast<int>(c10::DeviceType::CUDA); }

extern "C" int tutti_device_count() { return static_cast<int>(tutti::cuda_devices().size()); }

extern "C" const char* tutti_device_name(int device) {
  static const std::vector<tutti::CudaDevice> devices = tutti::cuda_devices();
  return devices.at(static_cast<std::size_t>(device)).name.c_str();
}

extern "C" void tutti_device_start(const char*) { at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); }

extern "C" tutti::Group* tutti_device_make_group(tutti::Group* control) {
  return new tutti::NcclGroup(*control);
}
