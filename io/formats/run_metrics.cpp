#include "io/formats/run_metrics.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "io/formats/matrix_metrics.h"
#include "io/json/json_text.h"
#include "recipe/setting.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetrics = "metrics/";
constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;  // a longer line is damaged

bool is_step(const std::string& line) { return line.find("\"lr\": ") != std::string::npos; }

// An empty object for a line that is not an object.
Json parsed(const std::string& line) {
  Json object = parse_json<Json>(line, nullptr, /*allow_exceptions=*/false);
  return object.is_object() ? object : Json::object();
}

void add_evaluations(const Json& line, int64_t last_step, RunMetrics& to) {
  const int64_t step = integer_member(line, "step");
  if (step > last_step) return;
  for (const auto& [name, value] : line.items())
    if (name.starts_with(kMetrics) && value.is_number())
      to.add_evaluation(evaluated_name(name), value.get<double>(), step);
}

void set_step(const Json& line, RunMetrics& to) {
  to.step = integer_member(line, "step");
  to.epoch = integer_member(line, "epoch");
  for (const auto& [name, value] : line.items())
    if (value.is_number()) to.figures.emplace_back(name, value.get<double>());
}

}  // namespace

bool less_is_better(const std::string& metric, bool composer) {
  const std::string name = lower_case(metric);
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  if (has("loss") || has("error") || has("perplexity")) return true;
  return !composer && (has("crossentropy") || has("mse") || has("mae"));
}

bool less_is_better(const Setting& recipe, const std::string& metric) {
  if (!recipe.is_table()) return less_is_better(metric);
  const std::string own = metric.substr(metric.rfind('/') + 1);
  Setting::Array sections;
  if (const Setting* evaluators = recipe.find("evaluators"); evaluators && evaluators->is_array())
    sections = evaluators->array();
  if (const Setting* data = recipe.find("data"); data && data->is_table() && data->has("eval"))
    sections.push_back(data->at("eval"));
  for (const Setting& section : sections) {
    if (!section.is_table() || !section.has("metrics") || !section.at("metrics").is_array()) continue;
    for (const Setting& each : section.at("metrics").array())
      if (each.is_table() && each.has("name") && each.has("kind") && each.at("name").is_text() &&
          each.at("name").text() == own)
        return less_is_better(each.at("kind").text());
  }
  return less_is_better(metric);
}

// Only the last line of a step is parsed: there are many.
RunMetrics::LessIsBetter RunMetrics::by_name() {
  return [](const std::string& metric) { return less_is_better(metric); };
}

RunMetrics RunMetrics::read(const std::string& path, int64_t last_step, LessIsBetter less) {
  RunMetrics metrics;
  metrics.less_ = std::move(less);
  std::string step_line;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return metrics;
  for_each_line(path, kMostLineBytes, [&](std::string& line) {
    if (is_step(line))
      step_line = std::move(line);
    else
      add_evaluations(parsed(line), last_step, metrics);
  });
  set_step(parsed(step_line), metrics);
  return metrics;
}

std::string evaluated_name(const std::string& logged) {
  return logged.starts_with(kMetrics) ? logged.substr(kMetrics.size()) : logged;
}

std::string display_name(const std::string& metric, const std::vector<std::string>& all) {
  const std::string label = metric.substr(0, metric.rfind('/') + 1);
  const bool only = std::ranges::all_of(
      all, [&](const std::string& other) { return other.substr(0, other.rfind('/') + 1) == label; });
  return only && metric != label + "loss" ? metric.substr(label.size()) : metric;
}

std::vector<EvaluatedMetric> single_metrics(const std::vector<EvaluatedMetric>& metrics) {
  std::vector<EvaluatedMetric> single;
  std::ranges::copy_if(metrics, std::back_inserter(single),
                       [](const EvaluatedMetric& metric) { return !matrix_cell(metric.name); });
  return single;
}

std::vector<std::pair<std::string, std::string>> matrix_lines(const std::vector<EvaluatedMetric>& metrics) {
  std::vector<std::pair<std::string, double>> values;
  for (const EvaluatedMetric& metric : metrics) values.emplace_back(metric.name, metric.last);
  std::vector<std::pair<std::string, std::string>> lines;
  for (const MetricMatrix& matrix : metric_matrices(values)) lines.emplace_back(matrix.name, matrix.text());
  return lines;
}

void RunMetrics::add_evaluation(std::string name, double value, int64_t step) {
  const auto metric = std::ranges::find(evaluated, name, &EvaluatedMetric::name);
  if (metric == evaluated.end()) {
    evaluated.push_back({std::move(name), value, value, step, value});
    return;
  }
  metric->last = value;
  const bool less = less_(name);
  if (std::isnan(metric->worst) || (less ? value > metric->worst : value < metric->worst))
    metric->worst = value;
  const bool better = less ? value < metric->best : value > metric->best;
  if (!better && !(std::isnan(metric->best) && !std::isnan(value))) return;
  metric->best = value;
  metric->best_step = step;
}

double RunMetrics::figure(const std::string& name) const {
  for (const auto& [key, value] : figures)
    if (key == name) return value;
  return std::nan("");
}

}  // namespace tutti
