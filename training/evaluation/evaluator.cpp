#include "training/evaluation/evaluator.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "data/texts/task_tokens.h"
#include "training/evaluation/catalog.h"
#include "training/metrics/answers.h"
#include "training/metrics/factory.h"
#include "training/metrics/loss_metrics.h"
#include "training/token_text.h"

namespace tutti {
namespace {

std::vector<MetricPtr> metrics_named(const std::vector<std::string>& names, bool composer,
                                     const DataCounts& counts = {}) {
  std::vector<MetricPtr> made;
  for (const auto& name : names) made.push_back(make_metric(name, composer, counts));
  return made;
}

// `target`: the array that a metric names, or "".
DataCounts counts_of(const SampleSpec& samples, const std::string& target) {
  DataCounts counts{.classes = samples.classes};
  for (const std::string& name : {target, std::string("target"), std::string("labels")})
    if (const auto shape = samples.shapes.find(name); shape != samples.shapes.end()) {
      if (!shape->second.empty()) counts.labels = std::max<int64_t>(shape->second[0], 0);
      return counts;
    }
  return counts;
}

std::vector<std::string> names_of(const std::vector<MetricPtr>& metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics)
    for (const std::string& part : metric->parts()) names.push_back(metric->measured_name() + part);
  return names;
}

// The model's, or those of a task.
std::vector<std::string> usual_metrics(const Model& model, const SampleSpec& samples) {
  if (samples.shapes.contains(kReferences)) return {"ExactMatch", "BLEU", "CHRF"};
  if (samples.shapes.contains(kChoiceTargets)) return {"ChoiceAccuracy", "ChoiceAccuracyNorm"};
  return model.get_metrics(/*is_train=*/false);
}

bool is_of_loss(const MetricPtr& metric) { return metric->measured_name() == ModelLoss::kName; }

// True if the pattern matches a part of the metric's name, in any case, as in
// composer.trainer._filter_metrics.
bool matches(const Setting& text, const std::string& name) try {
  const std::regex pattern(".*" + text.text() + ".*", std::regex::icase);
  return std::regex_search(name, pattern, std::regex_constants::match_continuous);
} catch (const std::regex_error& error) {
  text.fail(std::string("it is no regular expression: ") + error.what());
}

// The metrics in `own` that match a text, then the metrics named by the other texts.
std::vector<MetricPtr> chosen_metrics(const Model& model, const Setting::Array& texts,
                                      const std::vector<std::string>& own, bool composer,
                                      const DataCounts& counts) {
  std::vector<MetricPtr> made;
  for (const auto& name : own)
    if (std::ranges::any_of(texts, [&](const Setting& text) { return matches(text, name); }))
      made.push_back(name == ModelLoss::kName ? loss_metric(model) : make_metric(name, composer, counts));
  for (const auto& text : texts)
    if (std::ranges::none_of(own, [&](const std::string& name) { return matches(text, name); }))
      made.push_back(make_metric(text, composer, counts));
  return made;
}

// Adds metrics of tables, in place of others of their names.
void add_metrics(std::vector<MetricPtr>& made, const Setting::Array& tables, bool composer,
                 const SampleSpec& samples) {
  std::vector<MetricPtr> added;
  for (const Setting& table : tables) {
    const std::string target = table.is_table() && table.has("target") ? table.at("target").text() : "";
    added.push_back(make_metric(table, composer, counts_of(samples, target)));
  }
  std::erase_if(made, [&](const MetricPtr& old) {
    return std::ranges::any_of(added,
                               [&](const auto& one) { return one->measured_name() == old->measured_name(); });
  });
  std::ranges::move(added, std::back_inserter(made));
}

}  // namespace

Evaluator Evaluator::read(const Setting& section, const TrainSettings& train) {
  const EvaluatorKeys keys = EvaluatorKeys::kind().read(section);
  return {keys.label, section, DataSettings::read(section),
          keys.eval_interval ? train.interval(*keys.eval_interval) : train.eval_interval,
          keys.device_eval_microbatch_size};
}

bool Evaluator::names_metrics() const {
  const EvaluatorKeys keys = EvaluatorKeys::kind().read(section);
  return !keys.metric_names.is_none() || !keys.metrics.is_none();
}

std::vector<std::string> Evaluator::metric_names(const Model& model) const {
  return names_of(metrics(model, /*composer=*/false));
}

std::vector<MetricPtr> Evaluator::metrics(const Model& model, bool composer) const {
  const SampleSpec samples = data ? data->spec() : SampleSpec();
  const std::vector<std::string> own = usual_metrics(model, samples);
  EvaluatorKeys keys = EvaluatorKeys::kind().read(section);
  if (samples.shapes.contains(kReferences)) keys.loss = false;  // of texts without targets
  std::vector<MetricPtr> made;
  if (!keys.metric_names.is_none()) {
    auto known = own;
    if (keys.loss) known.emplace_back(ModelLoss::kName);
    made = chosen_metrics(model, keys.metric_names.array(), known, composer, counts_of(samples, ""));
  }
  if (made.empty()) made = metrics_named(own, composer, counts_of(samples, ""));
  if (!keys.metrics.is_none()) add_metrics(made, keys.metrics.array(), composer, samples);
  if (keys.loss && std::ranges::none_of(made, is_of_loss)) made.push_back(loss_metric(model));
  for (const MetricPtr& metric : made)
    if (auto* judge = dynamic_cast<AnswerMetric*>(metric.get()))
      judge->set_text(token_text_of(data.get(), model.vocabulary()));
  return made;
}

std::vector<MetricPtr> train_metrics(const Model& model, bool composer) {
  auto made = metrics_named(model.get_metrics(/*is_train=*/true), composer);
  const auto* many = dynamic_cast<const LossParts*>(&model);
  if (many && !many->loss_parts().empty())
    made.push_back(std::make_unique<PartLosses>(many->loss_parts(), /*has_sum=*/false));
  return made;
}

std::map<std::string, std::vector<std::string>> measured_metrics(const std::vector<Evaluator>& evaluators,
                                                                 const Model& model) {
  std::map<std::string, std::vector<std::string>> names = {
      {"train", names_of(train_metrics(model, /*composer=*/false))}};
  for (const auto& evaluator : evaluators) names[evaluator.label] = evaluator.metric_names(model);
  return names;
}

std::vector<std::string> evaluation_metrics(const std::vector<Evaluator>& evaluators, const Model& model) {
  std::vector<std::string> names;
  for (const auto& evaluator : evaluators)
    if (evaluator.interval.value() > 0)
      for (const auto& name : evaluator.metric_names(model))
        names.push_back("metrics/" + evaluator.label + "/" + name);
  return names;
}

}  // namespace tutti
