#pragma once

#include "algorithms/augmentation/sample_mixing.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {

// The options of a case that runs MixUp or CutMix on a microbatch.
SampleMixingOptions mixing_options_of(const GoldenCase& c);

// Runs the algorithm on the batch and the logits of the case, from BEFORE_FORWARD to BEFORE_BACKWARD. Expects
// (gtest) Composer's input, targets and loss, and that it asks for all draws of the script.
void expect_mixed(const GoldenCase& c, SampleMixing& algorithm, DrawScript script);

}  // namespace tutti
