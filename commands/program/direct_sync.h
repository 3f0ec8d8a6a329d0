#pragma once

#include <memory>

#include "actors/compute/sync_client.h"
#include "collectives/mesh.h"

namespace tutti {

// Runs the collectives on the calling thread, without actors, for a program's own loop: an entry advances
// while the rank runs or waits for entries. Of CPU tensors; memory of the groups is not charged to the meter.
std::unique_ptr<SyncClient> make_direct_sync(Groups groups);

}  // namespace tutti
