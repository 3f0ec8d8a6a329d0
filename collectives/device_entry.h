#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {
class Communicator;
class DeviceGraph;
struct CommunicatorId;
}  // namespace tutti

// The functions that a library for a kind of device exports: libtutti_cuda.so, and the tests' own device.
extern "C" {

const char* tutti_device_build_stamp();

// A c10::DeviceType.
int tutti_device_type();

// Number of devices that this process sees; 0 without a driver.
int tutti_device_count();

// The model of a device: "NVIDIA H100 80GB HBM3". Valid for good.
const char* tutti_device_name(int device);

// Registers the kind of device with libtorch, before its first use. Idempotent. `options`: of the library.
void tutti_device_start(const char* options);

// The most bytes of memory that this process may have of a device; 0 = no limit but the device's own.
void tutti_device_limit_memory(int device, int64_t bytes);

// `before` is called before each allocation of device memory, on the allocating thread, and may throw
// c10::OutOfMemoryError instead. Null: no more calls. False if the library cannot: then only the limit holds.
bool tutti_device_watch_memory(void (*before)(int device, std::size_t bytes));

// For work of the current device (tensors/kernels/graph.h). The caller owns it.
tutti::DeviceGraph* tutti_device_make_graph(int device);

// Writes the id of a new communicator. One rank calls this function, and shares the id with the other ranks.
void tutti_device_make_id(tutti::CommunicatorId* id);

// Begins to connect the ranks that have the id. `ranks`: of the communicator, by their numbers in the world;
// `rank`: the index of the calling rank, which has `device`. The caller owns the communicator.
tutti::Communicator* tutti_device_connect(const tutti::CommunicatorId* id, int device, int rank,
                                          const std::vector<int>* ranks);
}
