#include "collectives/device/groups.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "collectives/device/group.h"
#include "collectives/staged/group.h"

namespace tutti {

std::shared_ptr<const DeviceLibrary> communicators_of(const std::shared_ptr<const DeviceLibrary>& devices,
                                                      Backend backend, int neighbours) {
  const bool takes_nccl =
      backend == Backend::kNccl ||
      (backend == Backend::kAuto && devices && devices->is_gpu() && neighbours <= devices->device_count());
  return takes_nccl ? devices : nullptr;
}

Groups groups_on_device(Groups groups, const Device& device, const MakeGroup& make,
                        const std::shared_ptr<const DeviceLibrary>& library) {
  if (!device.runs_ahead()) return groups;
  auto& reductions = groups[static_cast<std::size_t>(GroupRole::kReductions)];
  const int world = groups.front()->size();
  if (!reductions && world > 1) {
    std::vector<int> all(static_cast<std::size_t>(world));
    std::iota(all.begin(), all.end(), 0);
    reductions = make(all);
  }
  const auto launched = std::make_shared<Launched>();
  for (const GroupRole role : {GroupRole::kGathers, GroupRole::kReductions, GroupRole::kReplicas}) {
    auto& group = groups[static_cast<std::size_t>(role)];
    if (group && library)
      group = std::make_shared<DeviceGroup>(group, device, library, launched);
    else if (group)
      group = std::make_shared<StagedGroup>(group, device);
  }
  return groups;
}

bool ready(const Groups& groups) {
  return std::ranges::all_of(groups, [](const auto& group) { return !group || group->ready(); });
}

void abandon(const Groups& groups) {
  for (const auto& group : groups)
    if (group) group->abandon();
}

}  // namespace tutti
