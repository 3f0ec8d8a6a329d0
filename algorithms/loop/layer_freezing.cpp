#include "algorithms/loop/layer_freezing.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <vector>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"
#include "training/state.h"

namespace tutti {
namespace {

// A layer that stands in two layers counts twice, as in Composer.
void add_leaves(const Layer& layer, std::vector<const Layer*>& leaves) {
  std::unordered_set<const Layer*> inner;
  for (const auto& slot : layer.slots())
    if (!slot->empty() && inner.insert(&slot->layer()).second) add_leaves(slot->layer(), leaves);
  if (inner.empty() && !layer.own_parameters().empty()) leaves.push_back(&layer);
}

std::vector<const Layer*> freezable_layers(const Layer& model) {
  std::vector<const Layer*> leaves;
  add_leaves(model, leaves);
  if (!leaves.empty()) leaves.pop_back();
  return leaves;
}

void freeze(const Layer& layer) {
  for (const auto& parameter : layer.own_parameters()) {
    parameter->tensor.set_requires_grad(false);
    parameter->tensor.mutable_grad() = at::Tensor();
  }
}

void freeze_first(const Layer& model, int64_t depth) {
  const auto all = freezable_layers(model);
  const int64_t count = std::min(depth, std::ssize(all));
  std::for_each(all.begin(), all.begin() + count, [](const Layer* layer) { freeze(*layer); });
}

// The views of a share are tensors of their own.
void freeze_views(State& state) {
  for (std::size_t p = 0; p < state.parameters.size(); ++p)
    if (!state.parameters[p].parameter->tensor.requires_grad())
      state.views.at(p).tensor.set_requires_grad(false);
}

// The part of the training before the last end of an epoch that is followed by a step; 1 = unknown.
double last_epoch_end(const State& state) {
  const Time& whole = state.max_duration;
  const int64_t last = whole.count() - 1;
  if (whole.unit() == TimeUnit::kEpoch) return static_cast<double>(last) / whole.value();
  if (whole.unit() != TimeUnit::kBatch || state.dataloader_len == 0) return 1.0;
  return static_cast<double>(last - last % state.dataloader_len) / whole.value();
}

double fraction_at(double now, double start, double level) {
  return now <= start ? 0.0 : level * ((now - start) / (1.0 - start));
}

}  // namespace

FrozenLayers freeze_layers(Layer& model, double current_duration, double freeze_start, double freeze_level) {
  const double fraction = fraction_at(current_duration, freeze_start, freeze_level);
  const auto layers = static_cast<double>(freezable_layers(model).size());
  const auto depth = static_cast<int64_t>(fraction * layers);
  freeze_first(model, depth);
  return {depth, fraction};
}

void LayerFreezing::require(const State& state) const {
  const std::size_t layers = freezable_layers(*state.model).size();
  const double fraction = fraction_at(last_epoch_end(state), start_, level_);
  if (depth_ > 0 || fraction * static_cast<double>(layers) >= 1.0) return;
  state.warn_on_rank_zero(name() + " has no effect: a training of " + state.max_duration.text() +
                          formatted(" freezes none of %zu layers before its end, by freeze_start = %g and "
                                    "freeze_level = %g",
                                    layers, start_, level_));
}

bool LayerFreezing::match(Event event, const State&) const {
  return event == Event::kEpochEnd || (event == Event::kFitStart && depth_ > 0);
}

void LayerFreezing::apply(Event event, State& state, Logger& logger) {
  if (event == Event::kFitStart) {
    if (depth_ > 0) TUTTI_PROBE("resume: layers are frozen again");
    freeze_first(*state.model, depth_);
    return freeze_views(state);
  }
  const FrozenLayers frozen = freeze_layers(*state.model, state.elapsed_duration().value(), start_, level_);
  if (frozen.depth > depth_) TUTTI_PROBE("freezing: more layers than before");
  depth_ = std::max(depth_, frozen.depth);
  freeze_views(state);
  logger.log_metrics({{"layer_freezing/layers_frozen", static_cast<double>(frozen.depth)},
                      {"layer_freezing/percentage_frozen", frozen.fraction}});
}

void LayerFreezing::restore(const std::string& text) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), depth_);
  if (read.ptr != text.data() + text.size() || depth_ < 1)
    throw UserError("LayerFreezing: expected a number of frozen layers, found " + text);
}

AlgorithmPtr LayerFreezingOptions::make(const Setting&) const {
  return std::make_shared<LayerFreezing>(freeze_start, freeze_level);
}

}  // namespace tutti
