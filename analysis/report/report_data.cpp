#include "analysis/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/comparison/run_values.h"
#include "analysis/comparison/short_names.h"
#include "analysis/report/charts.h"
#include "io/formats/base64.h"
#include "io/formats/matrix_metrics.h"
#include "io/formats/run_metrics.h"
#include "io/json/json_line.h"

namespace tutti {
namespace {

constexpr int64_t kMostPoints = 600;    // of a curve: about a pixel each
constexpr int64_t kFewestPoints = 60;   // where there are many curves
constexpr int64_t kAllPoints = 60'000;  // of a page
constexpr std::size_t kMostCharts = 240;
constexpr std::size_t kMostRowsOfMatrix = 200;
constexpr std::size_t kMostKeyColumns = 8;  // of the table of runs
const std::string kMetricPrefix = "metrics/";

// Keys that describe any run.
constexpr const char* kMainKeys[] = {"run_name",
                                     "seed",
                                     "model.kind",
                                     "data.train.kind",
                                     "data.train.batch_size",
                                     "data.train.device_batch_size",
                                     "optimizer.kind",
                                     "optimizer.lr",
                                     "scheduler.kind",
                                     "train.max_duration",
                                     "train.precision",
                                     "train.grad_accum",
                                     "sharding.strategy"};

bool is_main(const std::string& key) { return std::ranges::find(kMainKeys, key) != std::end(kMainKeys); }

template <class Items, class Text>
JsonText list(const Items& items, Text text) {
  std::string json = "[";
  for (const auto& item : items) {
    if (json.size() > 1) json += ',';
    json += text(item);
  }
  return {json + "]"};
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

JsonText texts(const std::vector<std::string>& all) {
  std::string json = json_line({{"", all}});  // {"": [...]}
  return {json.substr(5, json.size() - 6)};
}

JsonText buckets(const Series& series, double ChartPoint::*of) {
  return list(series.buckets, [of](const ChartPoint& one) { return number(one.*of); });
}
JsonText steps(const Series& series, int64_t ChartPoint::*of) {
  return list(series.buckets, [of](const ChartPoint& one) { return std::to_string(one.*of); });
}

std::string not_finite(const std::pair<int64_t, double>& point) {
  const char* text = std::isnan(point.second) ? "NaN" : point.second > 0 ? "inf" : "-inf";
  return "[" + std::to_string(point.first) + ",\"" + text + "\"]";
}

// x: the first step of each point; to, low and high: its last step and its range, if a point has several.
std::string series_json(const MetricsColumn& column, int64_t most) {
  const Series series = thin(column, most);
  JsonFields fields{{"x", steps(series, &ChartPoint::first)}, {"y", buckets(series, &ChartPoint::mean)}};
  const bool thinned =
      std::ranges::any_of(series.buckets, [](const ChartPoint& one) { return one.first != one.last; });
  if (thinned) {
    fields.emplace_back("to", steps(series, &ChartPoint::last));
    fields.emplace_back("low", buckets(series, &ChartPoint::low));
    fields.emplace_back("high", buckets(series, &ChartPoint::high));
  }
  if (series.not_finite_count > 0) {
    fields.emplace_back("bad", list(series.not_finite, not_finite));
    fields.emplace_back("bad_count", series.not_finite_count);
  }
  return json_line(fields);
}

double largest(const MetricsColumn* column) {
  double value = std::nan("");
  for (std::size_t i = 0; column && i < column->values.size(); ++i)
    value = std::fmax(value, column->values[i]);
  return value;
}

const char* text_of(TraceKind fault) {
  if (fault == TraceKind::kOutOfMemory) return "out of memory";
  return fault == TraceKind::kSkipped ? "step skipped" : "checkpoint failed";
}

std::string fault_json(const StepFault& fault) {
  return json_line(
      {{"step", fault.step}, {"rank", int64_t{fault.rank}}, {"text", std::string(text_of(fault.kind))}});
}

std::string start_json(const StartSummary& start) {
  JsonTexts ends, hosts;
  for (const RankSummary& rank : start.ranks) {
    ends.push_back(rank.incomplete.empty() ? rank.end : rank.incomplete);
    if (std::ranges::count(hosts, rank.host) == 0) hosts.push_back(rank.host);
  }
  return json_line({{"unix_ms", start.job.unix_ms},
                    {"world", int64_t{start.job.world}},
                    {"first", start.steps.first},
                    {"last", start.steps.last},
                    {"resume", start.job.resume},
                    {"command", start.job.command},
                    {"build", start.job.build},
                    {"hosts", texts(hosts)},
                    {"ends", texts(ends)},
                    {"faults", list(start.faults, fault_json)}});
}

std::string checkpoint_json(const CheckpointSummary& checkpoint) {
  return json_line({{"name", checkpoint.name},
                    {"step", checkpoint.step},
                    {"epoch", checkpoint.epoch},
                    {"files", checkpoint.files},
                    {"bytes", checkpoint.bytes},
                    {"problem", checkpoint.problem}});
}

std::string log_json(const LogFault& fault) {
  return json_line({{"when", fault.when},
                    {"error", fault.is_error},
                    {"ranks", list(fault.ranks, [](int rank) { return std::to_string(rank); })},
                    {"text", fault.text}});
}

std::string times_json(const WorkTimes::Seconds& times) {
  JsonFields fields;
  for (std::size_t work = 0; work < times.size(); ++work)
    if (times[work] > 0)
      fields.emplace_back(name(static_cast<Activity>(work)), JsonText{number(times[work])});
  return json_line(fields);
}

std::string rank_json(const WorkTimes& times) {
  return json_line(
      {{"compute", JsonText{times_json(times.compute)}}, {"beside", JsonText{times_json(times.beside)}}});
}

JsonText columns_json(const ReportedRun& run, const std::set<std::string>& shown, int64_t most) {
  JsonFields fields;
  for (const MetricsColumn& column : run.metrics.columns)
    if (shown.contains(column.name)) fields.emplace_back(column.name, JsonText{series_json(column, most)});
  return {json_line(fields)};
}

bool is_result(const MetricsColumn& column) {
  return column.name.starts_with(kMetricPrefix) && !column.name.starts_with("metrics/train/") &&
         !matrix_cell(column.name);
}

// The last values of what evaluations measured.
JsonText results_json(const ReportedRun& run) {
  JsonFields fields;
  for (const MetricsColumn& column : run.metrics.columns)
    if (is_result(column))
      fields.emplace_back(evaluated_name(column.name), JsonText{number(column.values.back())});
  return {json_line(fields)};
}

Headline headline_among(const std::vector<ReportedRun>& runs) {
  std::vector<const Setting*> recipes;
  std::vector<std::string> measured;
  for (const ReportedRun& run : runs) {
    recipes.push_back(&run.recipe);
    for (const MetricsColumn& column : run.metrics.columns)
      if (is_result(column)) measured.push_back(evaluated_name(column.name));
  }
  return headline_of(recipes, measured);
}

std::string headline_json(const Headline& headline) {
  return json_line({{"name", headline.name}, {"less_is_better", headline.less_is_better}});
}

// The best value of the metric, "null" without one.
std::string best_json(const MetricsTable& metrics, const Headline& headline) {
  const MetricsColumn* column =
      metrics.find(headline.name == "loss" ? "loss" : kMetricPrefix + headline.name);
  std::size_t best = column ? column->values.size() : 0;
  for (std::size_t i = 0; column && i < column->values.size(); ++i) {
    const double value = column->values[i];
    if (!std::isfinite(value)) continue;
    const bool first = best == column->values.size();
    if (first || (headline.less_is_better ? value < column->values[best] : value > column->values[best]))
      best = i;
  }
  if (!column || best == column->values.size()) return "null";
  return json_line({{"value", JsonText{number(column->values[best])}}, {"step", column->steps[best]}});
}

// The last values; of a matrix that is too large for the page, its description alone.
JsonText matrices_json(const ReportedRun& run) {
  std::vector<std::pair<std::string, double>> values;
  for (const MetricsColumn& column : run.metrics.columns)
    if (column.name.starts_with(kMetricPrefix))
      values.emplace_back(evaluated_name(column.name), column.values.back());
  return list(metric_matrices(values), [](const MetricMatrix& matrix) {
    const bool is_shown = matrix.rows.size() <= kMostRowsOfMatrix;
    const auto row_json = [](const std::vector<double>& row) { return list(row, number).json; };
    return json_line({{"name", matrix.name},
                      {"text", matrix.text()},
                      {"rows", is_shown ? list(matrix.rows, row_json) : JsonText{"[]"}}});
  });
}

std::string item_json(const LoggedItem& item) {
  JsonFields fields{{"name", item.name}, {"batches", item.batches}};
  if (!item.png.empty()) fields.emplace_back("png", base64(item.png));
  if (!item.columns.empty()) fields.emplace_back("columns", item.columns);
  if (!item.rows.empty()) fields.emplace_back("rows", item.rows);
  if (!item.markdown.empty()) fields.emplace_back("markdown", item.markdown);
  return json_line(fields);
}

std::string run_json(const ReportedRun& run, const std::set<std::string>& shown, int64_t most,
                     const Headline& headline) {
  const MetricsTable& metrics = run.metrics;
  return json_line({{"name", run.name},
                    {"path", run.path},
                    {"state", std::string(name(run.ending.condition))},
                    {"ending", run.ending.reason},
                    {"steps", metrics.last_step},
                    {"epoch", JsonText{number(metrics.last("epoch", std::nan("")))}},
                    {"loss", JsonText{number(metrics.last("loss", std::nan("")))}},
                    {"results", results_json(run)},
                    {"matrices", matrices_json(run)},
                    {"best", JsonText{best_json(metrics, headline)}},
                    {"samples_per_s", JsonText{number(median(metrics.find("samples_per_s")))}},
                    {"step_ms", JsonText{number(median(metrics.find("step_ms")))}},
                    {"memory_mb", JsonText{number(largest(metrics.find("memory_peak_mb")))}},
                    {"seconds", JsonText{number(training_seconds(metrics))}},
                    {"unreadable", metrics.unreadable_lines},
                    {"starts", list(run.starts, start_json)},
                    {"checkpoints", list(run.checkpoints, checkpoint_json)},
                    {"log", list(run.faults.lines, log_json)},
                    {"log_left_out", run.faults.left_out},
                    {"logged", list(run.logged.items, item_json)},
                    {"logged_left_out", run.logged.left_out},
                    {"ranks", list(run.times(), rank_json)},
                    {"clock", JsonText{series_json(training_clock(metrics), kMostPoints)}},
                    {"columns", columns_json(run, shown, most)}});
}

std::string line_json(const Chart::Line& line) {
  return json_line({{"column", line.column}, {"label", line.label}});
}

std::string chart_json(const Chart& chart) {
  return json_line({{"group", chart.group},
                    {"title", chart.title},
                    {"unit", chart.unit},
                    {"stairs", chart.stairs},
                    {"less_is_better", chart.less_is_better},
                    {"monitor", chart.monitor},
                    {"lines", list(chart.lines, line_json)}});
}

// All keys, the main ones first; `column`: the heading of a key in the table of runs, or "".
JsonText recipe_json(const std::vector<ReportedRun>& runs) {
  std::vector<RecipeValues> values;
  std::set<std::string> all;
  for (const ReportedRun& run : runs) {
    values.push_back(recipe_values(run.recipe));
    for (const auto& [key, value] : values.back()) all.insert(key);
  }
  const auto value = [](const auto& of, const std::string& key) {
    const auto entry = of.find(key);
    return entry == of.end() ? std::string() : entry->second;
  };
  const auto differs = [&](const std::string& key) {
    return std::ranges::any_of(values,
                               [&](const auto& of) { return value(of, key) != value(values[0], key); });
  };
  std::vector<std::string> columns = differing_keys(values);
  columns.resize(std::min(columns.size(), kMostKeyColumns));
  std::vector<std::string> keys;
  for (const char* key : kMainKeys)
    if (all.contains(key)) keys.push_back(key);
  for (const std::string& key : all)
    if (!is_main(key)) keys.push_back(key);
  return list(keys, [&](const std::string& key) {
    JsonTexts row;
    for (const auto& of : values) row.push_back(value(of, key));
    const bool is_column = std::ranges::count(columns, key) > 0;
    return json_line({{"key", key},
                      {"column", is_column ? short_name(key, columns) : ""},
                      {"differs", differs(key)},
                      {"main", is_main(key)},
                      {"values", texts(row)}});
  });
}

// Points for each curve, few enough to keep the page small.
int64_t points_of_a_curve(const std::vector<ReportedRun>& runs, std::size_t charts) {
  const auto curves = static_cast<int64_t>(runs.size() * std::max<std::size_t>(1, charts));
  return std::clamp(kAllPoints / curves, kFewestPoints, kMostPoints);
}

std::string without_less_than(const std::string& json) {
  std::string safe;
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::string report_json(const std::vector<ReportedRun>& runs) {
  std::vector<const MetricsTable*> metrics;
  for (const ReportedRun& run : runs) metrics.push_back(&run.metrics);
  auto charts = charts_of(metrics);
  const auto hidden = static_cast<int64_t>(charts.size()) - static_cast<int64_t>(kMostCharts);
  if (hidden > 0) charts.resize(kMostCharts);
  std::set<std::string> shown;
  for (const Chart& chart : charts)
    for (const Chart::Line& line : chart.lines) shown.insert(line.column);
  const int64_t most = points_of_a_curve(runs, charts.size());
  const Headline headline = headline_among(runs);
  return without_less_than(json_line(
      {{"runs", list(runs, [&](const ReportedRun& run) { return run_json(run, shown, most, headline); })},
       {"headline", JsonText{headline_json(headline)}},
       {"charts", list(charts, chart_json)},
       {"charts_left_out", std::max<int64_t>(0, hidden)},
       {"recipe", recipe_json(runs)}}));
}

}  // namespace tutti
