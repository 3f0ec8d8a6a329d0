#include "actors/evaluator.h"

#include <limits>

#include "actors/recipe_times.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

std::vector<MetricPtr> metrics_named(const std::vector<std::string>& names, bool composer) {
  std::vector<MetricPtr> made;
  for (const auto& name : names) made.push_back(make_metric(name, composer));
  return made;
}

}  // namespace

Time Evaluator::interval(const Setting& recipe) const {
  const bool own = section.has("eval_interval");
  return recipe_time(own ? section.at("eval_interval") : recipe.at("train").at("eval_interval"), recipe);
}

int64_t Evaluator::microbatch() const {
  return section.has("device_eval_microbatch_size") ? section.at("device_eval_microbatch_size").integer()
                                                    : std::numeric_limits<int64_t>::max();
}

std::vector<std::string> Evaluator::metric_names(const Model& model) const {
  std::vector<std::string> names;
  for (const auto& one : metrics(model, /*composer=*/false)) names.push_back(one->name());
  return names;
}

std::vector<MetricPtr> Evaluator::metrics(const Model& model, bool composer) const {
  std::vector<MetricPtr> made;
  for (const char* key : {"metric_names", "metrics"})
    if (section.has(key))
      for (const auto& one : section.at(key).array()) made.push_back(make_metric(one, composer));
  return made.empty() ? metrics_named(model.get_metrics(/*is_train=*/false), composer) : std::move(made);
}

std::vector<MetricPtr> train_metrics(const Model& model, bool composer) {
  return metrics_named(model.get_metrics(/*is_train=*/true), composer);
}

std::map<std::string, std::vector<std::string>> measured_metrics(const std::vector<Evaluator>& evaluators,
                                                                 const Model& model) {
  std::map<std::string, std::vector<std::string>> names = {{"train", model.get_metrics(/*is_train=*/true)}};
  for (const auto& evaluator : evaluators) names[evaluator.label] = evaluator.metric_names(model);
  return names;
}

std::vector<std::string> evaluation_metrics(const std::vector<Evaluator>& evaluators, const Setting& recipe,
                                            const Model& model) {
  std::vector<std::string> names;
  for (const auto& evaluator : evaluators)
    if (evaluator.interval(recipe).value() > 0)
      for (const auto& name : evaluator.metric_names(model))
        names.push_back("metrics/" + evaluator.label + "/" + name);
  return names;
}

}  // namespace tutti
