#pragma once

#include <cstdint>
#include <string>

#include "io/checkpoint/checkpoint_names.h"
#include "sim/environment/sim_disk.h"

namespace tutti {

// The step of the newest checkpoint in the folder `checkpoints` of the real disk; 0 without a readable
// checkpoint, or if the attempt resumed from the newest, whose folder is `resumed` ("" = none). Throws
// UserError for a checkpoint of a newer tutti, as does compare_checkpoint.
int64_t newest_saved_step(const std::string& checkpoints, const CheckpointNames& names,
                          const std::string& resumed);

struct CheckpointComparison {
  bool same = true;
  std::string text;  // a sentence; "" without a remark
};

// Compares the newest checkpoint that a replay has published on `replayed` with the run's own checkpoint of
// that name, if any, on the real disk: damaged files are a difference, so are other tensors if `exact`. A
// checkpoint of another attempt is named and not compared.
CheckpointComparison compare_checkpoint(SimDisk& replayed, const std::string& checkpoints,
                                        const CheckpointNames& names, bool exact);

}  // namespace tutti
