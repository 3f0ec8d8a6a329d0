#pragma once

#include "training/schedules/schedule.h"

namespace tutti {

// PyTorch's schedulers, with the rates of torch.optim.lr_scheduler. Empty where [scheduler] names none of
// them. Of reduce_lr_on_plateau a function of time knows nothing but 1: see Plateau.
Schedule make_pytorch_schedule(const Setting& section, const Horizon& horizon);

}  // namespace tutti
