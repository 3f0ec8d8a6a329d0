#pragma once

#include <cstdint>
#include <string>

#include "io/checkpoint/checkpoint_names.h"
#include "sim/environment/sim_disk.h"

namespace tutti {

// The step of the newest checkpoint in the folder `checkpoints` of the real disk; 0 if none can be read, or
// if it is the one that the attempt resumed from, whose folder is `resumed` ("" = none).
int64_t newest_saved_step(const std::string& checkpoints, const CheckpointNames& names,
                          const std::string& resumed);

struct CheckpointComparison {
  bool same = true;
  std::string text;  // a sentence; "" if there is nothing to say
};

// Compares the newest checkpoint that a replay has published on `replayed` with the run's own of that name,
// if there is one on the real disk: damaged files are a difference, so are other tensors if `exact`. A
// checkpoint of another attempt is named and not compared.
CheckpointComparison compare_checkpoint(SimDisk& replayed, const std::string& checkpoints,
                                        const CheckpointNames& names, bool exact);

}  // namespace tutti
