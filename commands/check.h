#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// The output of `tutti check`: the resolved recipe for `ranks` ranks, the batches, the model. Finds errors
// without training: opens the data, builds the model, reads initial weights and the checkpoint to resume
// from. `scan_data`: reads every sample too. Throws UserError.
std::string check_text(const Setting& recipe, int ranks, bool scan_data);

// The output of `tutti eval`: the metrics of all evaluators with the weights of a checkpoint ("" = the newest
// of the run folder, or initial weights if none). On one rank. Throws UserError.
std::string eval_text(const Setting& recipe, const std::string& checkpoint);

}  // namespace tutti
