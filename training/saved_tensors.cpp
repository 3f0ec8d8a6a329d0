#include "training/saved_tensors.h"

#include <string_view>

#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "training/trainee.h"

namespace tutti {
namespace {

std::string below(std::string_view group, const std::string& name) {
  return name.empty() ? "" : std::string(group) + name;
}

// Null for what all ranks have whole.
const ParamView* part_of(const Trainee& trainee, const ParamView& view) {
  return trainee.topology.share.pieces > 1 && !view.shape.empty() ? &view : nullptr;
}

// The views that tensors of listeners may belong to, by name.
using PartsByName = std::map<std::string_view, const ParamView*>;
PartsByName parts_of(const Trainee& trainee) {
  PartsByName parts;
  for (const ParamView& view : trainee.views)
    if (const ParamView* part = part_of(trainee, view)) parts.emplace(view.name, part);
  return parts;
}

// "algorithms/EMA/fc.weight" with the sizes of the view fc.weight; null for what all ranks have whole.
const ParamView* part_named(const PartsByName& parts, std::string_view name, const at::Tensor& tensor) {
  const auto part = parts.find(name.substr(name.rfind('/') + 1));
  return part != parts.end() && tensor.sizes() == at::IntArrayRef(part->second->extent) ? part->second
                                                                                        : nullptr;
}

}  // namespace

std::string SavedTensor::text() const {
  const std::string own = "'" + name + "'";
  return before.empty() || before == name ? own : own + " ('" + before + "' before surgery)";
}

Rows SavedTensor::rows() const {
  if (view) return {view->offset[0], view->offset[0] + view->extent[0]};
  return rows_of_piece(tensor, 1, 0);
}

std::vector<SavedTensor> weights_of(const Trainee& trainee) {
  std::vector<SavedTensor> weights;
  for (std::size_t p = 0; p < trainee.parameters.size(); ++p) {
    const NamedParameter& named = trainee.parameters[p];
    SavedTensor& saved =
        weights.emplace_back(named.name, named.parameter->origin, named.parameter->tensor.detach());
    if (trainee.topology.share.pieces == 1) continue;
    saved.tensor = trainee.views[p].tensor.detach();
    saved.view = part_of(trainee, trainee.views[p]);
  }
  for (const auto& named : trainee.buffers)
    weights.push_back({named.name, named.buffer->origin, named.buffer->tensor, named.buffer->constant});
  return weights;
}

std::vector<SavedTensor> saved_tensors(const Trainee& trainee) {
  std::vector<SavedTensor> saved = weights_of(trainee);
  for (SavedTensor& tensor : saved) {
    tensor.name = below(kModelPrefix, tensor.name);
    tensor.before = below(kModelPrefix, tensor.before);
  }
  const auto optimizer_states =
      trainee.optimizer ? trainee.optimizer->state() : std::vector<OptimizerState>();
  for (const auto& saved_state : optimizer_states) {
    const std::string& origin =
        trainee.parameters.at(saved_state.view - trainee.views.data()).parameter->origin;
    const std::string state = "/" + saved_state.name;
    saved.push_back({.name = below(kOptimizersPrefix, saved_state.view->name + state),
                     .before = below(kOptimizersPrefix, origin.empty() ? "" : origin + state),
                     .tensor = saved_state.tensor,
                     .view = saved_state.cut ? part_of(trainee, *saved_state.view) : nullptr,
                     .whole = saved_state.shape});
  }
  const PartsByName parts = parts_of(trainee);
  for (const auto& [name, tensor] : trainee.listeners)
    saved.push_back(
        {.name = name, .before = name, .tensor = tensor, .view = part_named(parts, name, tensor)});
  return saved;
}

std::map<std::string, std::string> names_before_surgery(const Trainee& trainee) {
  std::map<std::string, std::string> names;
  for (const SavedTensor& tensor : weights_of(trainee))
    if (!tensor.before.empty() && tensor.before != tensor.name) names[tensor.name] = tensor.before;
  return names;
}

SavedNames::SavedNames(const std::vector<SavedTensor>& all) {
  for (const SavedTensor& tensor : all) names_.insert(tensor.name);
}

std::string SavedNames::find(const TensorSource& tensors, const SavedTensor& saved,
                             const std::string& file) const {
  const bool own = tensors.contains(saved.name);
  const bool earlier = names_.count(saved.before) == 0 && tensors.contains(saved.before);
  if (own && earlier)
    throw UserError({file}, "it holds both '" + saved.name + "' and '" + saved.before +
                                "', which are names of one tensor after and before surgery");
  return own ? saved.name : earlier ? saved.before : "";
}

}  // namespace tutti
