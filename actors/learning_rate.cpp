#include "actors/learning_rate.h"

#include <algorithm>

#include "runtime/catalog.h"

namespace tutti {
namespace {

void require_metric(const Setting& monitor, const Model& model, bool evaluates) {
  if (!evaluates)
    monitor.fail("it is never measured: there is no [data.eval], or [train] eval_interval is 0");
  const auto names = evaluation_metrics(model);
  if (std::ranges::count(names, monitor.text()) == 0)
    monitor.fail("the model does not measure it; there are " + joined(names));
}

}  // namespace

LearningRate::LearningRate(const Setting& recipe, const Trainee& trainee, Horizon horizon, bool evaluates)
    : base_(trainee.optimizer->base_lr()) {
  if (!recipe.has("scheduler")) return;
  const Setting& section = recipe.at("scheduler");
  horizon.base_lr = base_;
  schedule_ = make_schedule(section, horizon);
  if (section.at("kind").text() != "reduce_lr_on_plateau") return;
  require_metric(section.at("monitor"), *trainee.model, evaluates);
  plateau_.emplace(section, base_);
}

double LearningRate::at(const Timestamp& now) const {
  return base_ * (schedule_ ? schedule_(now) : 1.0) * (plateau_ ? plateau_->multiplier() : 1.0);
}

bool LearningRate::observe(const NamedValues& metrics) {
  if (!plateau_) return false;
  const auto found = std::ranges::find(metrics, plateau_->monitor(), &NamedValues::value_type::first);
  return found != metrics.end() && plateau_->observe(found->second);
}

void LearningRate::restore(const PlateauState& state) {
  if (plateau_) plateau_->restore(state);
}

}  // namespace tutti
