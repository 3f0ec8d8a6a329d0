#pragma once

#include <cstdint>

#include "recipe/setting.h"
#include "training/time/time.h"

namespace tutti {

// Epochs of an iteration, by [train] iteration_length; 0: one iteration holds the whole training.
int64_t iteration_length(const Setting& recipe);

// A time that the recipe gives, in which iterations are the epochs that they have. Throws UserError that
// blames `setting` where they have no length.
Time recipe_time(const Setting& setting, const Setting& recipe);

// An interval that the recipe gives, as recipe_time. Where iterations have no length it stays in iterations:
// the whole training is one, so that none ends on the way, as in Composer.
Time recipe_interval(const Setting& setting, const Setting& recipe);

// How long [train] says to train: max_duration, stretched by scale_schedule_ratio. Throws UserError that
// blames the latter where it leaves nothing.
Time planned_duration(const Setting& recipe);

}  // namespace tutti
