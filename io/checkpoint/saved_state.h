#pragma once

#include <functional>
#include <string>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"

namespace tutti {

// The state of a run in a checkpoint. Throws OperatingError with the folder.
RunState state_of(const Checkpoint& checkpoint);
RunState state_in(const Disk& disk, const std::string& folder);

// Calls `use`, which copies parts of the state of the checkpoint in this folder. Errors that name no file get
// the folder.
void use_state(const std::string& folder, const std::function<void()>& use);

}  // namespace tutti
