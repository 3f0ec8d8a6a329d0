#include "models/zoo/mlp.h"

#include "models/layers/activation.h"
#include "models/layers/linear.h"
#include "runtime/error.h"

namespace tutti {

Mlp::Mlp(const MlpOptions& options) {
  const auto append = [this](std::shared_ptr<Layer> layer) {
    TUTTI_ASSERT(layer, "an activation that does not exist");
    add_slot(std::to_string(slots().size()), std::move(layer));
  };
  int64_t width = options.in_features;
  for (const int64_t next : options.hidden) {
    append(std::make_shared<Linear>(width, next));
    append(make_activation(options.activation));
    width = next;
  }
  append(std::make_shared<Linear>(width, options.num_classes));
}

TensorTree Mlp::forward(const Batch& batch) {
  at::Tensor x = batch["input"];
  if (x.dim() != 2) x = x.flatten(1);
  for (const auto& slot : slots()) x = (*slot)(x);
  return x;
}

}  // namespace tutti
