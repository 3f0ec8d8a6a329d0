#pragma once

#include <cstdint>
#include <utility>

#include "recipe/time/timestamp.h"

namespace tutti {

// The counts of a time, by their names in checkpoints; Composer has "batch" for "step".
inline constexpr std::pair<const char*, int64_t Timestamp::*> kTimestampCounts[] = {
    {"iteration", &Timestamp::iteration},
    {"epoch", &Timestamp::epoch},
    {"step", &Timestamp::batch},
    {"sample", &Timestamp::sample},
    {"token", &Timestamp::token},
    {"epoch_in_iteration", &Timestamp::epoch_in_iteration},
    {"token_in_iteration", &Timestamp::token_in_iteration},
    {"batch_in_epoch", &Timestamp::batch_in_epoch},
    {"sample_in_epoch", &Timestamp::sample_in_epoch},
    {"token_in_epoch", &Timestamp::token_in_epoch}};

}  // namespace tutti
