#include <algorithm>

#include "recipe/plugin_maker.h"
#include "training/optimizers/adam.h"
#include "training/optimizers/options.h"
#include "training/optimizers/sgd.h"

namespace tutti {
namespace {

// Without a recipe no catalog has checked the values; torch.optim checks them, too.
void require_not_negative(const Setting& section, const char* key) {
  if (!(section.at(key).number() >= 0.0)) section.at(key).fail("expected a number >= 0");
}

OptimizerPtr make_sgd(const SgdOptions& options, const Setting& section, const std::vector<ParamView>& views,
                      bool decoupled) {
  require_not_negative(section, "momentum");
  if (options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
    section.at("nesterov").fail("Nesterov momentum needs momentum > 0 and dampening = 0");
  return std::make_unique<Sgd>(
      views, common_of(section),
      Sgd::Options{options.momentum, options.dampening, options.nesterov, decoupled, options.maximize});
}

OptimizerPtr make_adam(const AdamOptions& options, const Setting& section,
                       const std::vector<ParamView>& views, Adam::Decay decay) {
  require_betas(section);
  const std::vector<double>& betas = options.betas;
  require_not_negative(section, "eps");
  return std::make_unique<Adam>(
      views, common_of(section),
      Adam::Options{betas[0], betas[1], options.eps, options.amsgrad, decay, options.maximize});
}

// Its library makes what groups it has of options of its own.
OptimizerPtr made_by_library(const Setting& section, const std::vector<ParamView>& views) {
  const char* why = "the optimizer of a plugin has no groups but those of its own options";
  const OptimizerKeys keys = OptimizerKeys::kind().read(section);
  if (!keys.groups.is_none()) keys.groups.fail(why);
  if (keys.layer_decay != 1.0) keys.layer_decay.fail(why);
  return made_by_plugin<OptimizerPtr>(section, views, keys.no_decay.value);
}

}  // namespace

OptimizerPtr SgdOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return make_sgd(*this, section, views, false);
}

OptimizerPtr DecoupledSgdwOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return make_sgd(*this, section, views, true);
}

OptimizerPtr AdamOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return make_adam(*this, section, views, Adam::Decay::kGradient);
}

OptimizerPtr AdamWOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return make_adam(*this, section, views, Adam::Decay::kWeight);
}

OptimizerPtr DecoupledAdamWOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return make_adam(*this, section, views, Adam::Decay::kDecoupled);
}

std::unique_ptr<Optimizer> make_optimizer(const Setting& section, const std::vector<ParamView>& views) {
  require_matching_patterns(section, views);
  if (is_of_plugin(section)) return made_by_library(section, views);
  if (auto made = OptimizerKinds::made<OptimizerPtr>(section, views)) return made;
  section.at("kind").fail("there is no such optimizer");
}

}  // namespace tutti
