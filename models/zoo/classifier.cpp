#include "models/zoo/classifier.h"

#include "models/losses/cross_entropy.h"

namespace tutti {

at::Tensor Classifier::loss(const Outputs& outputs, const Batch& batch) {
  return soft_cross_entropy(outputs.tensor(), batch["target"]);
}

std::vector<std::string> Classifier::get_metrics(bool is_train) const {
  if (is_train) return {"MulticlassAccuracy"};
  return {"MulticlassAccuracy", "CrossEntropy"};
}

}  // namespace tutti
