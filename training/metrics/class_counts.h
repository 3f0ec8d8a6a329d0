#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tutti {

// How often each class occurs in `labels`, added to `sums` from `begin` on; labels outside of [0, classes)
// are of no class.
void add_class_counts(std::vector<double>& sums, size_t begin, const at::Tensor& labels, int64_t classes);

// Throws UserError unless dim 1 of the outputs has `classes`, as the metric's num_classes says.
void require_classes(const std::string& metric, const at::Tensor& outputs, int64_t classes);

}  // namespace tutti
