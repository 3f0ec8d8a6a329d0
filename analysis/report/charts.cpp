#include "analysis/report/charts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace tutti {
namespace {

constexpr const char* kRunning = "Learning rate, throughput, memory";

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
  auto found = std::ranges::find(charts, title, &Chart::title);
  if (found == charts.end()) found = charts.insert(charts.end(), Chart{"Metrics", title, "", {}});
  found->lines.push_back({column, label});
}

std::vector<Chart> metric_charts(const std::vector<std::string>& columns) {
  std::vector<Chart> charts;
  for (const std::string& column : columns)
    if (column.starts_with(kMetrics)) add_metric(column, charts);
  return charts;
}

}  // namespace

std::vector<Chart> charts_of(const std::vector<const MetricsTable*>& runs) {
  const auto columns = columns_of(runs);
  std::vector<Chart> charts;
  for (const Known& known : kKnown) {
    if (std::ranges::count(columns, known.column) > 0)
      charts.push_back(
          {known.group, known.title, known.unit, {{std::string(known.column), ""}}, known.stairs});
    if (&known == &kKnown.front())
      for (Chart& metric : metric_charts(columns)) charts.push_back(std::move(metric));
  }
  for (const std::string& column : columns)
    if (!is_known(column) && !is_no_curve(column) && !column.starts_with(kMetrics))
      charts.push_back({"Other", column, "", {{column, ""}}});
  return charts;
}

}  // namespace tutti
