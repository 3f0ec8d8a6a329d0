#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// "target" of all samples as the data have it, before transforms: [samples, ...].
struct SampleTargets {
  at::Tensor targets = {};  // undefined: there is none, or it is not known
  std::string note = "";    // if samples had to be read, or are too many for that; "" = none
};

inline constexpr int64_t kMostReadForTargets = 1'000'000;  // samples

// Folders, tables and arrays know their targets; other samples are read, if there are at most
// kMostReadForTargets, they need not be fetched, and `reads`. Throws as Dataset::get.
SampleTargets sample_targets(const Dataset& data, bool reads = true);

// The class of each sample, where targets are single classes; else empty.
std::vector<int64_t> single_classes(const at::Tensor& targets);

}  // namespace tutti
