#include "training/saved_tensors.h"

#include <string_view>
#include <utility>

#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "training/trainee.h"

namespace tutti {
namespace {

std::string below(std::string_view group, const std::string& name) {
  return name.empty() ? "" : std::string(group) + name;
}

SavedTensor placed(std::string name, std::string before, const at::Tensor& tensor, const Shape& shape,
                   const Placement& placement, const Share& share) {
  return {std::move(name), std::move(before), tensor, shape, placement, region_of(shape, placement, share)};
}

// The views that tensors of listeners may belong to, by name.
using ViewsByName = std::map<std::string_view, const ParamView*>;
ViewsByName views_of(const Trainee& trainee) {
  ViewsByName views;
  for (const ParamView& view : trainee.views) views.emplace(view.name, &view);
  return views;
}

// "algorithms/EMA/fc.weight" with the sizes of the view fc.weight is placed as the view; others are
// replicated.
SavedTensor listener_tensor(const std::string& name, const at::Tensor& tensor, const ViewsByName& views,
                            const Share& share) {
  const auto view = views.find(std::string_view(name).substr(name.rfind('/') + 1));
  const bool is_part = view != views.end() && tensor.sizes() == at::IntArrayRef(view->second->region.extent);
  return is_part ? placed(name, name, tensor, view->second->shape, view->second->placement, share)
                 : placed(name, name, tensor, tensor.sizes().vec(), {}, share);
}

}  // namespace

std::string SavedTensor::text() const {
  const std::string own = "'" + name + "'";
  return before.empty() || before == name ? own : own + " ('" + before + "' before surgery)";
}

std::vector<SavedTensor> weights_of(const Trainee& trainee) {
  std::vector<SavedTensor> weights;
  const Share& share = trainee.topology.share;
  for (std::size_t p = 0; p < trainee.parameters.size(); ++p) {
    const NamedParameter& named = trainee.parameters[p];
    const at::Tensor& whole = named.parameter->tensor;
    const ParamView* view = share.pieces > 1 ? &trainee.views[p] : nullptr;
    weights.push_back(placed(named.name, named.parameter->origin, (view ? view->tensor : whole).detach(),
                             whole.sizes().vec(), view ? view->placement : row_placement(whole.sizes()),
                             share));
  }
  for (const auto& named : trainee.buffers) {
    const at::Tensor& tensor = named.buffer->tensor;
    weights.push_back(placed(named.name, named.buffer->origin, tensor, tensor.sizes().vec(), {}, share));
    weights.back().constant = named.buffer->constant;
  }
  return weights;
}

std::vector<SavedTensor> saved_tensors(const Trainee& trainee) {
  std::vector<SavedTensor> saved = weights_of(trainee);
  for (SavedTensor& tensor : saved) {
    tensor.name = below(kModelPrefix, tensor.name);
    tensor.before = below(kModelPrefix, tensor.before);
  }
  const Share& share = trainee.topology.share;
  const auto optimizer_states =
      trainee.optimizer ? trainee.optimizer->state() : std::vector<OptimizerState>();
  for (const auto& saved_state : optimizer_states) {
    const std::string& origin =
        trainee.parameters.at(saved_state.view - trainee.views.data()).parameter->origin;
    const std::string state = "/" + saved_state.name;
    saved.push_back(placed(below(kOptimizersPrefix, saved_state.view->name + state),
                           below(kOptimizersPrefix, origin.empty() ? "" : origin + state), saved_state.tensor,
                           saved_state.shape, saved_state.placement, share));
  }
  const ViewsByName views = views_of(trainee);
  for (const auto& [name, tensor] : trainee.listeners)
    saved.push_back(listener_tensor(name, tensor, views, share));
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
