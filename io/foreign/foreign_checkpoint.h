#pragma once

#include <string>

#include "io/checkpoint/checkpoint.h"
#include "runtime/disk.h"

namespace tutti {

// True if there is something at the path that may be another program's checkpoint: a file, or a folder of
// torch.distributed.checkpoint or of Hugging Face's.
bool is_foreign_checkpoint(const Disk& disk, const std::string& path);

// Another program's checkpoint, as one of tutti's: pieces in that program's files, which must stay, under
// that program's names: "model/module.fc.weight", "optimizers/module.fc.weight/exp_avg", or
// "optimizers/#3/exp_avg" where the optimizer counts its parameters. RunState::imported has the order of
// names. Reads
//   Composer's checkpoints: a .pt file, or a sharded one's folder;
//   folders of torch.distributed.checkpoint;
//   Lightning's .ckpt files;
//   folders of Hugging Face's Trainer, and of its models;
//   files of torch.save with a state_dict(), and an optimizer's beside it.
// No pickled code is run. Throws UserError with the file.
Checkpoint foreign_checkpoint(const Disk& disk, const std::string& path);

}  // namespace tutti
