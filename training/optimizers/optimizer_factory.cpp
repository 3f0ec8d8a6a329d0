#include <algorithm>

#include "training/optimizers/adam.h"
#include "training/optimizers/sgd.h"

namespace tutti {
namespace {

// Without a recipe no catalog has checked the values; torch.optim checks them, too.
double not_negative(const Setting& section, const char* key) {
  const double value = section.at(key).number();
  if (!(value >= 0.0)) section.at(key).fail("expected a number >= 0");
  return value;
}

bool flag_or_false(const Setting& section, const char* key) {
  return section.has(key) && section.at(key).boolean();
}

Optimizer::Common common_of(const Setting& section) {
  Optimizer::Common common{not_negative(section, "lr"), not_negative(section, "weight_decay"), {}};
  if (section.has("no_decay")) common.no_decay = section.at("no_decay").texts();
  return common;
}

Sgd::Options sgd_options(const Setting& section, bool decoupled) {
  const Sgd::Options options{not_negative(section, "momentum"), section.at("dampening").number(),
                             section.at("nesterov").boolean(), decoupled, flag_or_false(section, "maximize")};
  if (options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
    section.at("nesterov").fail("Nesterov momentum needs momentum > 0 and dampening = 0");
  return options;
}

Adam::Options adam_options(const Setting& section, Adam::Decay decay) {
  const std::vector<double> betas = section.at("betas").numbers();
  if (betas.size() != 2) section.at("betas").fail("expected two numbers");
  for (const double beta : betas)
    if (!(beta >= 0.0 && beta < 1.0)) section.at("betas").fail("expected numbers in [0, 1)");
  return {betas[0],
          betas[1],
          not_negative(section, "eps"),
          section.at("amsgrad").boolean(),
          decay,
          flag_or_false(section, "maximize")};
}

void require_matching_patterns(const Setting& section, const std::vector<ParamView>& views) {
  if (!section.has("no_decay")) return;
  for (const auto& pattern : section.at("no_decay").array())
    if (std::ranges::none_of(views, [&](auto& view) { return matches_pattern(pattern.text(), view.name); }))
      section.at("no_decay").fail("no parameter matches " + pattern.text());
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const Setting& section, const std::vector<ParamView>& views) {
  require_matching_patterns(section, views);
  const Setting& kind = section.at("kind");
  const auto sgd = [&](bool decoupled) {
    return std::make_unique<Sgd>(views, common_of(section), sgd_options(section, decoupled));
  };
  const auto adam = [&](Adam::Decay decay) {
    return std::make_unique<Adam>(views, common_of(section), adam_options(section, decay));
  };
  if (kind.text() == "sgd") return sgd(false);
  if (kind.text() == "decoupled_sgdw") return sgd(true);
  if (kind.text() == "adam") return adam(Adam::Decay::kGradient);
  if (kind.text() == "adamw") return adam(Adam::Decay::kWeight);
  if (kind.text() == "decoupled_adamw") return adam(Adam::Decay::kDecoupled);
  kind.fail("there is no such optimizer");
}

}  // namespace tutti
