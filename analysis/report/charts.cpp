#include "analysis/report/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "io/formats/matrix_metrics.h"
#include "io/formats/run_metrics.h"

namespace tutti {
namespace {

constexpr const char* kRunning = "Learning rate, throughput, memory";
constexpr const char* kOther = "Other";
constexpr std::size_t kFewestOfAPrefix = 5;  // that are a group of their own

struct Known {
  std::string_view column;
  const char* group;
  const char* title;
  const char* unit;
  bool stairs = false;
};

// In the order of the page. Metrics come behind the first, others behind the last.
constexpr std::array kKnown{
    Known{"loss", "Loss", "loss", ""},
    Known{"lr", kRunning, "learning rate", ""},
    Known{"samples_per_s", kRunning, "throughput", "samples/s"},
    Known{"step_ms", kRunning, "time of a step", "ms"},
    Known{"data_wait_ms", kRunning, "wait for data in a step", "ms"},
    Known{"data_read_ms", kRunning, "reading of a batch, on one thread", "ms"},
    Known{"data_disk_ms", kRunning, "wait for the disk in it", "ms"},
    Known{"memory_peak_mb", kRunning, "peak memory of a rank", "MB"},
    Known{"grad_accum", kRunning, "gradient accumulation", "microbatches", true},
};

constexpr std::string_view kMetrics = "metrics/";

bool is_no_curve(std::string_view column) { return column == "epoch" || column == "since_start_s"; }
bool is_known(std::string_view column) {
  return std::ranges::any_of(kKnown, [&](const Known& one) { return one.column == column; });
}

// The columns of all runs, each once, in the order in which they come.
std::vector<std::string> columns_of(const std::vector<const MetricsTable*>& runs) {
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (const MetricsTable* run : runs)
    for (const MetricsColumn& column : run->columns)
      if (seen.insert(column.name).second) columns.push_back(column.name);
  return columns;
}

// "metrics/eval/Accuracy": a line "eval" of the chart "Accuracy".
void add_metric(const std::string& column, std::vector<Chart>& charts) {
  const std::string rest = column.substr(kMetrics.size());
  const auto slash = rest.find('/');
  const std::string label = slash == rest.npos ? "" : rest.substr(0, slash);
  const std::string title = slash == rest.npos ? rest : rest.substr(slash + 1);
  auto chart = std::ranges::find(charts, title, &Chart::title);
  if (chart == charts.end())
    chart = charts.insert(charts.end(),
                          {.group = "Metrics", .title = title, .less_is_better = less_is_better(title)});
  chart->lines.push_back({column, label});
}

std::vector<Chart> metric_charts(const std::vector<std::string>& columns) {
  std::vector<Chart> charts;
  for (const std::string& column : columns)
    if (column.starts_with(kMetrics) && !matrix_cell(column)) add_metric(column, charts);
  return charts;
}

// Groups in the order of their first column, "Other" first.
std::vector<Chart> monitor_charts(const std::vector<std::string>& columns) {
  const auto prefix = [](const std::string& column) { return column.substr(0, column.rfind('/')); };
  std::map<std::string, std::size_t> counts;
  for (const std::string& column : columns) ++counts[prefix(column)];
  std::vector<std::string> groups = {kOther};
  std::map<std::string, std::vector<Chart>> by_group;
  for (const std::string& column : columns) {
    const bool is_group = column.find('/') != column.npos && counts[prefix(column)] >= kFewestOfAPrefix;
    const std::string group = is_group ? prefix(column) : kOther;
    if (std::ranges::count(groups, group) == 0) groups.push_back(group);
    by_group[group].push_back({.group = group, .title = column, .lines = {{column, ""}}, .monitor = true});
  }
  std::vector<Chart> charts;
  for (const std::string& group : groups)
    for (Chart& chart : by_group[group]) charts.push_back(std::move(chart));
  return charts;
}

// Losses of evaluations are lines beside the training loss.
void add_evaluated_losses(Chart& loss, std::vector<Chart>& metrics) {
  const auto evaluated = std::ranges::find(metrics, loss.title, &Chart::title);
  if (evaluated == metrics.end()) return;
  loss.lines.front().label = "train";
  loss.lines.insert(loss.lines.end(), evaluated->lines.begin(), evaluated->lines.end());
  metrics.erase(evaluated);
}

}  // namespace

std::vector<Chart> charts_of(const std::vector<const MetricsTable*>& runs) {
  const auto columns = columns_of(runs);
  std::vector<Chart> charts, metrics = metric_charts(columns);
  for (const Known& known : kKnown) {
    if (std::ranges::count(columns, known.column) > 0)
      charts.push_back({known.group,
                        known.title,
                        known.unit,
                        {{std::string(known.column), ""}},
                        known.stairs,
                        known.column == "loss"});
    if (&known != &kKnown.front()) continue;
    if (!charts.empty()) add_evaluated_losses(charts.front(), metrics);
    for (Chart& metric : metrics) charts.push_back(std::move(metric));
  }
  std::vector<std::string> others;
  for (const std::string& column : columns)
    if (!is_known(column) && !is_no_curve(column) && !column.starts_with(kMetrics)) others.push_back(column);
  for (Chart& chart : monitor_charts(others)) charts.push_back(std::move(chart));
  return charts;
}

namespace {

constexpr std::size_t kMostNotFinite = 200;

// Collects values of one bucket after the other.
class Buckets {
 public:
  explicit Buckets(std::vector<ChartPoint>& out) : out_(out) {}

  void add(int64_t bucket, int64_t step, double value) {
    if (bucket != open_) {
      close();
      open_ = bucket;
      out_.push_back({step, step, 0, value, value});
    }
    ChartPoint& point = out_.back();
    point.last = step;
    point.low = std::min(point.low, value);
    point.high = std::max(point.high, value);
    point.mean += (value - point.mean) / static_cast<double>(++count_);
  }
  void close() { count_ = 0; }

 private:
  std::vector<ChartPoint>& out_;
  int64_t open_ = -1, count_ = 0;
};

}  // namespace

Series thin(const MetricsColumn& column, int64_t most) {
  Series series;
  const auto count = static_cast<int64_t>(column.steps.size());
  if (count == 0) return series;
  const int64_t first = column.steps.front();
  const double width = static_cast<double>(column.steps.back() - first + 1) / static_cast<double>(most);
  Buckets buckets(series.buckets);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step = column.steps[static_cast<std::size_t>(i)];
    const double value = column.values[static_cast<std::size_t>(i)];
    if (std::isfinite(value)) {
      const auto place = static_cast<int64_t>(static_cast<double>(step - first) / width);
      buckets.add(count <= most ? i : place, step, value);
    } else if (series.not_finite_count++; series.not_finite.size() < kMostNotFinite) {
      series.not_finite.emplace_back(step, value);
    }
  }
  return series;
}

}  // namespace tutti
