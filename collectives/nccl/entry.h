#pragma once

#include "collectives/group.h"

// The functions exported by libtutti_cuda.so, with `const char* tutti_cuda_build_stamp()`.
extern "C" {

// Number of GPUs that this process sees; 0 without a driver.
int tutti_cuda_device_count();

// Makes a NcclGroup of the ranks of `control` on the current device. The caller owns the group.
tutti::Group* tutti_cuda_make_group(tutti::Group* control);
}
