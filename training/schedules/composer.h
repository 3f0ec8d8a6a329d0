#pragma once

#include "training/schedules/schedule.h"

namespace tutti {

// Composer's schedulers; formulas as in composer.optim. Empty where [scheduler] names none of them.
Schedule make_composer_schedule(const Setting& section, const Horizon& horizon);

// Whether [scheduler] names one of them.
bool is_composer_schedule(const Setting& section);

}  // namespace tutti
