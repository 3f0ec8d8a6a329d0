#include "algorithms/surgery/lora.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <set>

#include "algorithms/surgery/effect.h"
#include "algorithms/surgery/peft_adapter.h"
#include "models/layers/activation.h"
#include "models/layers/linear.h"
#include "recipe/catalog.h"
#include "recipe/dotted_path.h"
#include "runtime/error.h"
#include "training/optimizers/parameter_groups.h"
#include "training/state.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kAllLinear = "all-linear";
constexpr const char* kOutputLayer = "lm_head";  // which PEFT leaves out of all-linear

struct Widths {
  int64_t in = 0, out = 0;  // 0: not a layer that can have an adapter
};

Widths widths_of(const Layer& layer) {
  if (const auto* linear = dynamic_cast<const Linear*>(&layer))
    return {linear->in_features(), linear->out_features()};
  if (const auto* conv = dynamic_cast<const Conv1D*>(&layer))
    return {conv->in_features(), conv->out_features()};
  return {};
}

std::shared_ptr<Linear> adapter_half(int64_t in, int64_t out) {
  return std::make_shared<Linear>(in, out, /*bias=*/false);
}

bool fits(const std::string& pattern, const std::string& name) {
  if (pattern.find('*') != std::string::npos) return matches_pattern(pattern, name);
  return name == pattern || name.ends_with('.' + pattern);
}

bool fits_any(const Names& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& one) { return fits(one, name); });
}

bool is_target(const LoraOptions& options, const Names& targets, const std::string& name) {
  if (is_of_saved_module(options, name + ".weight")) return false;
  return fits_any(targets, name) || (targets == Names{kAllLinear} && !fits(kOutputLayer, name));
}

// The layers that can have an adapter.
Names candidates_of(Layer& model) {
  const auto wrapped = wrapped_in<LoraLayer>(model);
  Names names;
  for (const NamedSlot& named : slots(model))
    if (!named.slot->empty() && widths_of(named.slot->layer()).in > 0 &&
        !wrapped.contains(&named.slot->layer()))
      names.push_back(named.name);
  return names;
}

std::string names_text(const Names& candidates) {
  std::set<std::string> parts;
  for (const std::string& name : candidates) parts.insert(last_part(name));
  return parts.empty() ? "none" : joined({parts.begin(), parts.end()});
}

// peft.utils.constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING, by the layers that a model has.
Names default_targets(const Names& candidates) {
  for (const Names& targets : {Names{"q_proj", "v_proj"}, Names{"c_attn"}, Names{"query", "value"}})
    if (std::ranges::all_of(targets, [&](const std::string& target) {
          return std::ranges::any_of(candidates, [&](const auto& name) { return fits(target, name); });
        }))
      return targets;
  throw UserError("targets: there is no default for this model; expected names of its Linear and Conv1D: " +
                  names_text(candidates));
}

void require_targets(const Names& targets, const Names& candidates) {
  for (const std::string& target : targets)
    if (std::ranges::none_of(candidates,
                             [&](const auto& name) { return fits(target, name) || target == kAllLinear; }))
      throw UserError("targets: no Linear and no Conv1D is called '" + target + "'; there are " +
                      names_text(candidates));
  if (targets.size() > 1 && std::ranges::count(targets, kAllLinear) > 0)
    throw UserError(std::string("targets: ") + kAllLinear + " stands alone");
}

void require_saved_modules(Layer& model, const LoraOptions& options) {
  const auto all = parameters(model);
  for (const std::string& pattern : options.modules_to_save)
    if (std::ranges::none_of(all, [&](const NamedParameter& named) {
          return is_of_saved_module({.modules_to_save = {pattern}}, named.name);
        }))
      throw UserError("modules_to_save: no layer with parameters is called '" + pattern + "'");
}

void freeze_others(Layer& model, const LoraOptions& options) {
  for (const NamedParameter& named : parameters(model)) {
    if (is_of_adapter(named.name)) continue;
    named.parameter->trained = is_of_saved_module(options, named.name);  // also if [model] freeze names it
    if (!named.parameter->trained) named.parameter->tensor.set_requires_grad(false);
  }
}

}  // namespace

LoraLayer::LoraLayer(const std::shared_ptr<Layer>& base, const LoraOptions& options)
    : scaling_(options.scaling()),
      base_(add_slot("", base)),
      dropout_(add_slot("lora_dropout", std::make_shared<Dropout>(options.dropout))),
      lora_A_(add_slot("lora_A", adapter_half(widths_of(*base).in, options.r))),
      lora_B_(add_slot("lora_B", adapter_half(options.r, widths_of(*base).out))) {
  lora_B_.layer().own_parameters()[0]->init = constant_init(0.0);
}

TensorTree LoraLayer::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  return base_(x) + lora_B_(lora_A_(dropout_(x))) * scaling_;
}

bool is_of_saved_module(const LoraOptions& options, const std::string& parameter) {
  for (std::size_t dot = parameter.find('.'); dot != std::string::npos; dot = parameter.find('.', dot + 1))
    if (fits_any(options.modules_to_save, parameter.substr(0, dot))) return true;
  return false;
}

std::vector<std::string> apply_lora(Layer& model, const LoraOptions& options) {
  const Names candidates = candidates_of(model);
  const Names targets = options.targets.empty() ? default_targets(candidates) : options.targets;
  require_targets(targets, candidates);
  require_saved_modules(model, options);
  const auto wrapped = wrapped_in<LoraLayer>(model);
  Names names;
  replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const std::shared_ptr<Layer> layer = named.slot->share();
    if (widths_of(*layer).in == 0 || wrapped.contains(layer.get())) return nullptr;
    if (!is_target(options, targets, named.name)) return nullptr;
    names.push_back(named.name);
    return std::make_shared<LoraLayer>(layer, options);
  });
  freeze_others(model, options);
  return names;
}

void Lora::apply(Event event, State& state, Logger& logger) try {
  if (event == Event::kBeforeLoad) return read_adapter(state, options_);
  const auto names = apply_lora(*state.model, options_);
  logger.log_hyperparameters({{"lora/num_adapters", static_cast<int64_t>(names.size())}});
} catch (const UserError& error) {
  fail(error.what());
}

AlgorithmPtr LoraOptions::make(const Setting&) const { return std::make_shared<Lora>(*this); }

}  // namespace tutti
