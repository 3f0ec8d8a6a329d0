#pragma once

#include <string>
#include <vector>

namespace tutti {

// The run, or the training in stages, directly below a folder of runs whose files changed last. Throws
// UserError if there is none.
std::string newest_run(const std::string& runs);

// The names of the published checkpoints in a folder of checkpoints, by step.
std::vector<std::string> checkpoint_names(const std::string& checkpoints);

// The folder of the checkpoint that `name` means in a folder of checkpoints: "best", a whole name, or the
// beginning of a single name, up to the end of a number ("ep3" begins ep3-ba90, and not ep30-ba900). "" if
// there is none, or more than one.
std::string named_checkpoint(const std::string& checkpoints, const std::string& name);

}  // namespace tutti
