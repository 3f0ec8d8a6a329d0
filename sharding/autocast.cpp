#include "sharding/autocast.h"

#include <unordered_map>

#include "models/layers/conv.h"
#include "models/layers/linear.h"

namespace tutti {
namespace {

bool is_cast(const Layer& layer) {
  if (const auto* convolution = dynamic_cast<const Conv2d*>(&layer)) return !convolution->weight_rule();
  return dynamic_cast<const Linear*>(&layer) || dynamic_cast<const Conv1D*>(&layer);
}

}  // namespace

std::vector<bool> cast_by_autocast(Layer& root) {
  std::unordered_map<const Layer*, int> uses;
  for (const NamedSlot& named : slots(root))
    if (!named.slot->empty()) ++uses[&named.slot->layer()];
  for (const auto& [name, layer] : layers(root))
    for (const Layer* read : layer->reads()) ++uses[read];
  std::unordered_map<const Parameter*, int> owners, casting;
  for (const auto& [name, layer] : layers(root))
    for (const auto& own : layer->own_parameters()) {
      ++owners[own.get()];
      casting[own.get()] += uses[layer] == 1 && is_cast(*layer) ? 1 : 0;
    }
  std::vector<bool> cast;
  for (const NamedParameter& named : parameters(root)) {
    const Parameter* parameter = named.parameter.get();
    cast.push_back(owners[parameter] == 1 && casting[parameter] == 1 &&
                   parameter->tensor.scalar_type() == at::kFloat);
  }
  return cast;
}

}  // namespace tutti
