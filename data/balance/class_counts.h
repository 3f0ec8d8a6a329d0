#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "recipe/setting.h"

namespace tutti {

// The class of each training sample as the model numbers it, after first_class; -1 for targets that do not
// count. As sample_targets, of data with the transforms of their section. `train`: [data.train], resolved.
struct TrainedClasses {
  std::vector<int64_t> classes = {};  // empty: the targets are no single classes, or not known
  std::string note = "";              // why not, or on what it took; "" = none
};
TrainedClasses trained_classes(const Dataset& data, const Setting& train, int64_t ignore_index,
                               bool reads = true);

// The samples of each class, [number of classes]; empty if `classes` are. `number`: at least so many classes.
std::vector<int64_t> class_counts(const std::vector<int64_t>& classes, int64_t number);

// N / (C n) for each class, with N samples, n of them of the class, and C classes that have samples:
// sklearn's class_weight = "balanced". 1 for a class without samples.
std::vector<double> balanced_weights(const std::vector<int64_t>& counts);

// Negatives / positives of each label, of targets that are 0 or 1: [labels], or one number where a sample has
// one target. 1 for a label without positives. Empty if targets are not known, or have another form.
std::vector<double> balanced_pos_weights(const Dataset& data);

}  // namespace tutti
