#include "training/metrics/class_counts.h"

#include <ATen/ATen.h>

#include "runtime/error.h"

namespace tutti {

void add_class_counts(std::vector<double>& sums, size_t begin, const at::Tensor& labels, int64_t classes) {
  const at::Tensor flat = labels.reshape(-1).to(at::kLong);
  const at::Tensor known = flat.masked_select(flat.ge(0).logical_and(flat.lt(classes)));
  const at::Tensor counts = at::bincount(known, {}, classes).to(at::kDouble).cpu();
  const double* count = counts.const_data_ptr<double>();
  for (size_t i = 0; i < static_cast<size_t>(classes); ++i) sums[begin + i] += count[i];
}

void require_classes(const std::string& metric, const at::Tensor& outputs, int64_t classes) {
  if (outputs.size(1) == classes) return;
  throw UserError(metric + ": num_classes is " + std::to_string(classes) + ", but the model has scores of " +
                  std::to_string(outputs.size(1)) + " classes");
}

}  // namespace tutti
