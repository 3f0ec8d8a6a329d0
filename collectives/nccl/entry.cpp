#include "collectives/nccl/entry.h"

#include "collectives/nccl/group.h"
#include "tensors/cuda/device.h"

extern "C" int tutti_cuda_device_count() { return static_cast<int>(tutti::cuda_devices().size()); }

extern "C" tutti::Group* tutti_cuda_make_group(tutti::Group* control) {
  return new tutti::NcclGroup(*control);
}
