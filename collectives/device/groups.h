#pragma once

#include <memory>

#include "collectives/catalog.h"
#include "collectives/device_library.h"
#include "collectives/mesh.h"
#include "tensors/device.h"

namespace tutti {

// The library whose communicators join devices; null: groups of the host do. kAuto takes NCCL where each rank
// has a GPU of its own, since NCCL refuses shared GPUs. `neighbours`: the most ranks on a machine. `devices`:
// null for the CPU.
std::shared_ptr<const DeviceLibrary> communicators_of(const std::shared_ptr<const DeviceLibrary>& devices,
                                                      Backend backend, int neighbours);

// The groups of a rank on a device: sums and gathers of the device's tensors go through the communicators of
// `library`, or, without a library, through the memory of the host; kWorld stays the host's, for reports
// between ranks. `make`: see make_groups. Groups of the CPU are returned unchanged; a CPU that stands in for
// a device has as many groups.
Groups groups_on_device(Groups groups, const Device& device, const MakeGroup& make,
                        const std::shared_ptr<const DeviceLibrary>& library);

// Group::ready of all of them. One connects after the other, in the same order on all ranks.
bool ready(const Groups& groups);
// Group::abandon of all of them.
void abandon(const Groups& groups);

}  // namespace tutti
