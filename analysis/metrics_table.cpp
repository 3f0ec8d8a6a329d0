#include "analysis/metrics_table.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "io/json/json_line.h"
#include "io/run_paths.h"

namespace tutti {
namespace {

constexpr double kMostSteps = 1e15;

class MetricsReader {
 public:
  void add(std::string_view line) {
    const JsonNumbers numbers = json_numbers_of(line);
    const auto step = std::ranges::find(numbers.members, "step", &std::pair<std::string, double>::first);
    if (step == numbers.members.end() || !(std::abs(step->second) < kMostSteps)) {
      ++metrics.unreadable_lines;
      return;
    }
    const auto at = static_cast<int64_t>(step->second);
    metrics.last_step = std::max(metrics.last_step, at);
    for (const auto& [name, value] : numbers.members)
      if (name != "step") add(name, at, value);
  }
  MetricsTable metrics;

 private:
  // The last value of a step counts.
  void add(const std::string& name, int64_t step, double value) {
    const auto [place, fresh] = places_.try_emplace(name, metrics.columns.size());
    if (fresh) metrics.columns.push_back({name, {}, {}});
    MetricsColumn& column = metrics.columns[place->second];
    if (!column.steps.empty() && column.steps.back() >= step) {
      if (column.steps.back() == step) column.values.back() = value;
      return;
    }
    column.steps.push_back(step);
    column.values.push_back(value);
  }

  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

const MetricsColumn* MetricsTable::find(std::string_view name) const {
  const auto column = std::ranges::find(columns, name, &MetricsColumn::name);
  return column == columns.end() ? nullptr : &*column;
}

double MetricsTable::last(std::string_view name, double otherwise) const {
  const MetricsColumn* column = find(name);
  return column ? column->values.back() : otherwise;
}

MetricsColumn training_clock(const MetricsTable& metrics) {
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
  const MetricsColumn clock = training_clock(metrics);
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

MetricsTable read_metrics(const Disk& disk, const std::string& run_dir) {
  MetricsReader reader;
  const std::string path = path_in_run(run_dir, kMetricsFile);
  if (!disk.exists(path)) return {};
  const auto bytes = disk.read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    if (end > 0) reader.add(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return std::move(reader.metrics);
}

}  // namespace tutti
