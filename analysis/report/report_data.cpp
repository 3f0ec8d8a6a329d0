#include "analysis/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/report/charts.h"
#include "io/formats/base64.h"
#include "io/formats/run_metrics.h"
#include "io/json/json_line.h"

namespace tutti {
namespace {

constexpr int64_t kMostPoints = 600;    // of a curve: about a pixel each
constexpr int64_t kFewestPoints = 60;   // where there are many curves
constexpr int64_t kAllPoints = 60'000;  // of a page
constexpr std::size_t kMostCharts = 240;

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

// Seconds of training at the end of a step, for a time axis.
MetricsColumn clock_of(const MetricsTable& metrics) {
  MetricsColumn clock{"clock", {}, {}};
  const MetricsColumn* step_ms = metrics.find("step_ms");
  double sum = 0;
  for (std::size_t i = 0; step_ms && i < step_ms->steps.size(); ++i) {
    if (std::isfinite(step_ms->values[i])) sum += 1e-3 * step_ms->values[i];
    clock.steps.push_back(step_ms->steps[i]);
    clock.values.push_back(sum);
  }
  return clock;
}

double training_seconds(const MetricsTable& metrics) {
  const MetricsColumn clock = clock_of(metrics);
  return clock.values.empty() ? 0 : clock.values.back();
}

double median(const MetricsColumn* column) {
  if (!column || column->values.empty()) return std::nan("");
  std::vector<double> values = column->values;
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
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
  return column.name.starts_with("metrics/") && !column.name.starts_with("metrics/train/");
}

// The last values of what evaluations measured.
JsonText results_json(const ReportedRun& run) {
  JsonFields fields;
  for (const MetricsColumn& column : run.metrics.columns)
    if (is_result(column))
      fields.emplace_back(evaluated_name(column.name), JsonText{number(column.values.back())});
  return {json_line(fields)};
}

// The first column of the page: the first metric of an evaluation for which more is better, else the first
// metric, else the loss.
std::string headline_column(const std::vector<ReportedRun>& runs) {
  std::string first = "loss";
  for (const ReportedRun& run : runs)
    for (const MetricsColumn& column : run.metrics.columns) {
      if (!is_result(column)) continue;
      if (!less_is_better(column.name)) return column.name;
      if (first == "loss") first = column.name;
    }
  return first;
}

std::string headline_json(const std::string& column) {
  return json_line({{"name", evaluated_name(column)}, {"less_is_better", less_is_better(column)}});
}

// The best value of the column, "null" without one.
std::string best_json(const MetricsTable& metrics, const std::string& name) {
  const MetricsColumn* column = metrics.find(name);
  std::size_t best = column ? column->values.size() : 0;
  for (std::size_t i = 0; column && i < column->values.size(); ++i) {
    const double value = column->values[i];
    if (!std::isfinite(value)) continue;
    const bool first = best == column->values.size();
    if (first || (less_is_better(name) ? value < column->values[best] : value > column->values[best]))
      best = i;
  }
  if (!column || best == column->values.size()) return "null";
  return json_line({{"value", JsonText{number(column->values[best])}}, {"step", column->steps[best]}});
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
                     const std::string& headline) {
  const MetricsTable& metrics = run.metrics;
  return json_line({{"name", run.name},
                    {"path", run.path},
                    {"state", std::string(name(run.ending.condition))},
                    {"ending", run.ending.reason},
                    {"steps", metrics.last_step},
                    {"epoch", JsonText{number(metrics.last("epoch", std::nan("")))}},
                    {"loss", JsonText{number(metrics.last("loss", std::nan("")))}},
                    {"results", results_json(run)},
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
                    {"clock", JsonText{series_json(clock_of(metrics), kMostPoints)}},
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

// All keys, the main ones first.
JsonText recipe_json(const std::vector<ReportedRun>& runs) {
  std::vector<std::map<std::string, std::string>> values;
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
  std::vector<std::string> keys;
  for (const char* key : kMainKeys)
    if (all.contains(key)) keys.push_back(key);
  for (const std::string& key : all)
    if (!is_main(key)) keys.push_back(key);
  return list(keys, [&](const std::string& key) {
    JsonTexts row;
    for (const auto& of : values) row.push_back(value(of, key));
    return json_line(
        {{"key", key}, {"differs", differs(key)}, {"main", is_main(key)}, {"values", texts(row)}});
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
  const std::string headline = headline_column(runs);
  return without_less_than(json_line(
      {{"runs", list(runs, [&](const ReportedRun& run) { return run_json(run, shown, most, headline); })},
       {"headline", JsonText{headline_json(headline)}},
       {"charts", list(charts, chart_json)},
       {"charts_left_out", std::max<int64_t>(0, hidden)},
       {"recipe", recipe_json(runs)}}));
}

}  // namespace tutti
