#pragma once

#include <cstdint>
#include <string>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// A classifier's needs for the samples' "target" and the loss of [model].
struct TargetPlan {
  int64_t outputs = 0;      // a sample: classes, labels or values
  bool has_labels = false;  // see Classifier::set_labels
};

// The plan of a model with outputs [N, outputs]. Throws UserError if the loss does not take the targets, or
// num_classes or the loss's weights are of another number.
TargetPlan plan_targets(const Setting& section, const SampleSpec& samples);
// The same for targets in this array.
TargetPlan plan_targets_in(const std::string& array, const Setting& section, const SampleSpec& samples);

// The plan of a model with scores [N, classes, height, width] for the pixels of "input". `classes` is the
// recipe's, or else the targets'.
TargetPlan plan_pixels(const Setting& section, const SampleSpec& samples);

// The plan of consecutive layers, or of a program, with outputs of this shape a sample. Throws UserError with
// the key "layers" or "path", also if the shape does not fit the targets.
TargetPlan plan_targets(const Setting& section, const SampleSpec& samples, const Shape& outputs);

// The plan of one output of several, which is compared with the array `target`. `losses`: a table of
// [[model.losses]]. Throws UserError with its key "output", or the table.
TargetPlan plan_targets(const Setting& losses, const SampleSpec& samples, const std::string& target,
                        const Shape& outputs);

}  // namespace tutti
