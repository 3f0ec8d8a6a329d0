#include "models/classifier.h"

#include <ATen/ops/cross_entropy_loss.h>

namespace tutti {

at::Tensor Classifier::loss(const Outputs& outputs, const Batch& batch) {
  return at::cross_entropy_loss(outputs.tensor(), batch["target"]);
}

std::vector<std::string> Classifier::get_metrics(bool) const {
  return {"MulticlassAccuracy", "CrossEntropy"};
}

}  // namespace tutti
