#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "tensors/param_view.h"
#include "training/optimizers/options.h"

namespace tutti {

// What every optimizer has.
struct OptimizerCommon {
  double lr = 0.1;
  double weight_decay = 0.0;
  std::vector<std::string> no_decay = {};   // name patterns ("*.bias") of parameters without weight decay
  std::vector<ParameterGroup> groups = {};  // the first that matches counts
  // Factor of the learning rate from a layer to the layer before, as in BEiT and timm: see layers_of.
  double layer_decay = 1.0;
  // The optimizer's own learning rate and weight decay for some parameters, where no group sets them.
  std::function<std::optional<ParameterGroup>(const ParamView& view)> own = {};
};

// The keys lr, weight_decay, no_decay, groups and layer_decay of a section. Throws UserError.
OptimizerCommon common_of(const Setting& section);

// Throws UserError if a pattern of no_decay or groups matches no view, or if no layers repeat for
// layer_decay.
void require_matching_patterns(const Setting& section, const std::vector<ParamView>& views);

// Throws UserError if a pattern of the list matches no view, or with `trained` none that is trained; unless
// betas are two numbers in [0, 1).
void require_matches(const Setting& patterns, const std::vector<ParamView>& views, bool trained = false);
void require_betas(const Setting& section);

// Hyperparameters of a parameter.
struct ParameterRates {
  double lr_scale = 1.0;  // its learning rate by the optimizer's
  double weight_decay = 0.0;
  std::size_t group = 0;  // its place in OptimizerCommon::groups, from 1; 0: no group
};
std::vector<ParameterRates> rates_of(const OptimizerCommon& common, const std::vector<ParamView>& views);

// The layer of each parameter, counted from the input. Layers are the blocks that repeat by number, in their
// order: "h.0", "layer2.1", "encoder_layer_3". Layer 0: parameters before the first block; the last layer:
// parameters behind the last block, or else the last block. Empty if nothing repeats.
std::vector<std::size_t> layers_of(const std::vector<ParamView>& views);

// True if `name` matches `pattern`; * matches any characters.
bool matches_pattern(const std::string& pattern, const std::string& name);
bool matches_any(const std::vector<std::string>& patterns, const std::string& name);

}  // namespace tutti
