#pragma once

#include <memory>
#include <vector>

#include "collectives/communicator.h"

namespace tutti::test_device {

// A communicator of the test device: NCCL's calls, over memory that ranks share, in one process or several.
// Sums are the ordered sums of collectives/group.h, so that trainings have the CPU's bits.
//
// A collective is two kernels of its stream. The first copies the input to the shared memory. The second
// makes the output when all ranks have done so, and until then holds up what is after it, as on a GPU; the
// host is held up by waits alone. In late mode the first runs when a rank waits for a result.
//
// Calls that differ between ranks, or that two ranks make in different orders over all communicators, for
// which GPUs wait for ever, are named by failure().
std::unique_ptr<Communicator> connect(const CommunicatorId& id, int rank, const std::vector<int>& ranks);

}  // namespace tutti::test_device
