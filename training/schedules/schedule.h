#pragma once

#include <functional>

#include "training/time/timestamp.h"

namespace tutti {

// What the learning rate of the batch that begins at `now` is multiplied by: a pure function of time.
using Schedule = std::function<double(const Timestamp& now)>;

// What a schedule must know of the run.
struct Horizon {
  Time max_duration;  // as it will be trained: scaled by the ratio already
  int64_t batches_per_epoch = 0;
  double scale_schedule_ratio = 1.0;  // Composer's: stretches every time of a schedule but its warm-up
  bool composer = false;              // [compat]: a scaled warm-up is left when it would have ended unscaled
  bool unchecked = false;             // what goes wrong later in the training is an error then, not at once
  double base_lr = 1.0;  // the optimizer's, which schedules of rates (max_lr, eta_min) are told by
};

// A time of a schedule as Composer places it: epochs and, where the run is counted in epochs, fractions of
// the training become batches; others are scaled by `ratio`, but not fractions, whose whole is scaled
// already. Whole, truncated.
Time place(const Time& time, const Horizon& horizon, double ratio);

// What [scheduler] names, Composer's or PyTorch's (training/schedules). Throws UserError where its times do
// not fit together or do not fit the run.
Schedule make_schedule(const Setting& section, const Horizon& horizon);

}  // namespace tutti
