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
  const auto found = parts.find(name.substr(name.rfind('/') + 1));
  return found != parts.end() && tensor.sizes() == at::IntArrayRef(found->second->extent) ? found->second
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
    const NamedParameter& one = trainee.parameters[p];
    SavedTensor& saved =
        weights.emplace_back(one.name, one.parameter->origin, one.parameter->tensor.detach());
    if (trainee.topology.share.pieces == 1) continue;
    saved.tensor = trainee.views[p].tensor.detach();
    saved.view = part_of(trainee, trainee.views[p]);
  }
  for (const auto& one : trainee.buffers)
    weights.push_back({one.name, one.buffer->origin, one.buffer->tensor, one.buffer->constant});
  return weights;
}

std::vector<SavedTensor> saved_tensors(const Trainee& trainee) {
  std::vector<SavedTensor> saved = weights_of(trainee);
  for (SavedTensor& one : saved) {
    one.name = below(kModelPrefix, one.name);
    one.before = below(kModelPrefix, one.before);
  }
  const auto of_optimizer = trainee.optimizer ? trainee.optimizer->state() : std::vector<OptimizerState>();
  for (const auto& one : of_optimizer) {
    const std::string& origin = trainee.parameters.at(one.view - trainee.views.data()).parameter->origin;
    const std::string state = "/" + one.name;
    saved.push_back({.name = below(kOptimizersPrefix, one.view->name + state),
                     .before = below(kOptimizersPrefix, origin.empty() ? "" : origin + state),
                     .tensor = one.tensor,
                     .view = one.cut ? part_of(trainee, *one.view) : nullptr,
                     .whole = one.shape});
  }
  const PartsByName parts = parts_of(trainee);
  for (const auto& [name, tensor] : trainee.listeners)
    saved.push_back(
        {.name = name, .before = name, .tensor = tensor, .view = part_named(parts, name, tensor)});
  return saved;
}

std::map<std::string, std::string> names_before_surgery(const Trainee& trainee) {
  std::map<std::string, std::string> names;
  for (const SavedTensor& one : weights_of(trainee))
    if (!one.before.empty() && one.before != one.name) names[one.name] = one.before;
  return names;
}

SavedNames::SavedNames(const std::vector<SavedTensor>& all) {
  for (const SavedTensor& one : all) names_.insert(one.name);
}

std::string SavedNames::find(const TensorSource& tensors, const SavedTensor& wanted,
                             const std::string& file) const {
  const bool own = tensors.contains(wanted.name);
  const bool earlier = names_.count(wanted.before) == 0 && tensors.contains(wanted.before);
  if (own && earlier)
    throw UserError({file}, "it holds both '" + wanted.name + "' and '" + wanted.before +
                                "', which are names of one tensor after and before surgery");
  return own ? wanted.name : earlier ? wanted.before : "";
}

}  // namespace tutti
