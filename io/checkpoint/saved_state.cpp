#include "io/checkpoint/saved_state.h"

#include "runtime/error.h"

namespace tutti {

RunState state_of(const Checkpoint& checkpoint) try {
  return RunState::from_json(checkpoint.manifest.state);
} catch (const OperatingError& error) {
  throw OperatingError({checkpoint.folder}, error.message());
}

RunState state_in(const Disk& disk, const std::string& folder) {
  return state_of({folder, read_manifest(disk, folder)});
}

void use_state(const std::string& folder, const std::function<void()>& use) try {
  use();
} catch (const RunError& error) {
  if (!error.position().file.empty()) throw;
  throw RunError(error.kind(), {folder}, "the checkpoint's state: " + error.message());
}

}  // namespace tutti
