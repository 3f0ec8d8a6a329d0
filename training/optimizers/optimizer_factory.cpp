#include <algorithm>

#include "recipe/plugin_maker.h"
#include "training/optimizers/adam.h"
#include "training/optimizers/options.h"
#include "training/optimizers/sgd.h"

namespace tutti {
namespace {

// Without a recipe no catalog has checked the values; torch.optim checks them, too.
void require_not_negative(const Setting& section, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (!(section.at(key).number() >= 0.0)) section.at(key).fail("expected a number >= 0");
}

std::vector<std::string> no_decay_of(const Setting& section) {
  return section.has("no_decay") ? section.at("no_decay").texts() : std::vector<std::string>();
}

Optimizer::Common common_of(const Setting& section, double lr, double weight_decay) {
  require_not_negative(section, {"lr", "weight_decay"});
  return {lr, weight_decay, no_decay_of(section)};
}

OptimizerPtr make_sgd(const SgdOptions& options, const Setting& section, const std::vector<ParamView>& views,
                      bool decoupled) {
  require_not_negative(section, {"momentum"});
  if (options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
    section.at("nesterov").fail("Nesterov momentum needs momentum > 0 and dampening = 0");
  return std::make_unique<Sgd>(
      views, common_of(section, options.lr, options.weight_decay),
      Sgd::Options{options.momentum, options.dampening, options.nesterov, decoupled, options.maximize});
}

OptimizerPtr make_adam(const AdamOptions& options, const Setting& section,
                       const std::vector<ParamView>& views, Adam::Decay decay) {
  const std::vector<double>& betas = options.betas;
  if (betas.size() != 2) section.at("betas").fail("expected two numbers");
  for (const double beta : betas)
    if (!(beta >= 0.0 && beta < 1.0)) section.at("betas").fail("expected numbers in [0, 1)");
  require_not_negative(section, {"eps"});
  return std::make_unique<Adam>(
      views, common_of(section, options.lr, options.weight_decay),
      Adam::Options{betas[0], betas[1], options.eps, options.amsgrad, decay, options.maximize});
}

void require_matching_patterns(const Setting& section, const std::vector<ParamView>& views) {
  if (!section.has("no_decay")) return;
  for (const auto& pattern : section.at("no_decay").array())
    if (std::ranges::none_of(views, [&](auto& view) { return matches_pattern(pattern.text(), view.name); }))
      section.at("no_decay").fail("no parameter matches " + pattern.text());
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
  if (is_of_plugin(section)) return made_by_plugin<OptimizerPtr>(section, views, no_decay_of(section));
  if (auto made = OptimizerKinds::made<OptimizerPtr>(section, views)) return made;
  section.at("kind").fail("there is no such optimizer");
}

}  // namespace tutti
