#pragma once

#include "collectives/group.h"

// What libtutti_cuda.so exports, beside `const char* tutti_cuda_build_stamp()`.
extern "C" {

// How many GPUs this process sees; 0 without a driver.
int tutti_cuda_device_count();

// A group over NCCL of the ranks of `control`, on the current device (collectives/nccl/group.h). The caller
// owns it.
tutti::Group* tutti_cuda_make_group(tutti::Group* control);
}
