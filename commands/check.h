#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// What `tutti check` prints: the recipe as it would run on so many ranks, its batches, its model. Finds what
// training would refuse, without training: opens the data, builds the model, reads initial weights and the
// checkpoint to resume from. `scan_data`: reads every sample too. Throws UserError.
std::string check_text(const Setting& recipe, int ranks, bool scan_data);

// What `tutti eval` prints: the metrics of [data.eval] under the weights of a checkpoint ("" = the run
// folder's newest, and where there is none the recipe's initial ones). One rank.
std::string eval_text(const Setting& recipe, const std::string& checkpoint);

}  // namespace tutti
