#pragma once

#include "models/model.h"

namespace tutti {

// A model that gives one score a class, [N, classes], for batch["input"] and is trained by cross entropy
// against batch["target"] [N].
class Classifier : public Model {
 public:
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  std::vector<std::string> get_metrics(bool is_train) const override;
};

}  // namespace tutti
