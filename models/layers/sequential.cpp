#include "models/layers/sequential.h"

namespace tutti {

Sequential::Sequential(std::vector<std::shared_ptr<Layer>> layers) {
  for (auto& layer : layers) add_slot(std::to_string(slots().size()), std::move(layer));
}

TensorTree Sequential::forward(const TensorTree& input) {
  TensorTree x = input;
  for (const auto& slot : slots()) x = (*slot)(x);
  return x;
}

}  // namespace tutti
