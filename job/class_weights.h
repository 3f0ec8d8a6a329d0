#pragma once

#include "job/job.h"

namespace tutti {

// In the model's losses, puts numbers in place of weight and pos_weight "balanced": those of the training
// samples, after a split (data/balance/class_counts.h). Throws UserError with the key.
void settle_class_weights(Job& job);

// Leaves such weights out, for jobs that compute no loss.
void leave_out_balanced_weights(Setting& recipe);

}  // namespace tutti
