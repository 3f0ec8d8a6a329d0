#include "analysis/comparison/compared_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/comparison/run_values.h"
#include "analysis/comparison/short_names.h"
#include "analysis/comparison/text_table.h"
#include "analysis/metrics_table.h"
#include "analysis/run_status.h"
#include "runtime/disk.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kNoCell = "-";
constexpr std::size_t kFewestRuns = 2;  // that are shown, however wide

struct ComparedRun {
  RunStatus status;
  RecipeValues keys;
  double seconds = 0, samples_per_s = std::nan("");
};

using Cell = std::function<std::string(const ComparedRun& run)>;

class Comparison {
 public:
  explicit Comparison(const std::vector<std::string>& run_dirs) : names_(distinct_names(run_dirs)) {
    const PosixDisk disk;
    for (const std::string& run_dir : run_dirs) {
      ComparedRun run{.status = status_of(run_dir)};
      const MetricsTable metrics = read_metrics(disk, run_dir);
      run.seconds = training_seconds(metrics);
      run.samples_per_s = median(metrics.find("samples_per_s"));
      run.keys = recipe_values(run.status.recipe);
      runs_.push_back(std::move(run));
    }
  }

  std::string text(int width) {
    add("state", [](const auto& run) { return std::string(name(run.status.ending.condition)); });
    if (std::ranges::any_of(runs_, has_failed))
      add("failure",
          [](const auto& run) { return has_failed(run) ? shown(run.status.ending.reason) : kNoCell; });
    add("steps", [](const auto& run) { return std::to_string(run.status.metrics.step); });
    add("epoch", [](const auto& run) { return std::to_string(run.status.metrics.epoch); });
    add("training time", [](const auto& run) { return formatted("%.4g s", run.seconds); });
    add("samples/s", [](const auto& run) { return number_text(run.samples_per_s); });
    add("loss", [](const auto& run) { return number_text(run.status.metrics.figure("loss")); });
    add_metrics();
    add_matrices();
    add_keys();
    return table_text(columns_, width);
  }

 private:
  static bool has_failed(const ComparedRun& run) {
    return run.status.ending.condition == RunCondition::kFailed;
  }

  static std::string number_text(double value) {
    return std::isnan(value) ? kNoCell : formatted("%.6g", value);
  }

  void add(const std::string& label, const Cell& cell) {
    if (columns_.empty()) {
      columns_.push_back({"", {}, 0});
      for (std::size_t i = 0; i < names_.size(); ++i)
        columns_.push_back({on_one_line(names_[i]), {}, i < kFewestRuns ? 0 : static_cast<int>(i)});
    }
    columns_[0].cells.push_back(on_one_line(label));
    for (std::size_t i = 0; i < runs_.size(); ++i)
      columns_[i + 1].cells.push_back(on_one_line(cell(runs_[i])));
  }

  // The first run that measured it, in the order of its evaluations.
  std::vector<std::string> metric_names() const {
    std::vector<std::string> names;
    for (const ComparedRun& run : runs_)
      for (const EvaluatedMetric& metric : single_metrics(run.status.metrics.evaluated))
        if (std::ranges::count(names, metric.name) == 0) names.push_back(metric.name);
    return names;
  }

  static const EvaluatedMetric* metric_of(const ComparedRun& run, const std::string& name) {
    const auto& evaluated = run.status.metrics.evaluated;
    const auto metric = std::ranges::find(evaluated, name, &EvaluatedMetric::name);
    return metric == evaluated.end() ? nullptr : &*metric;
  }

  double best_of_all(const std::string& name) const {
    double best = std::nan("");
    for (const ComparedRun& run : runs_)
      if (const EvaluatedMetric* metric = metric_of(run, name))
        best = less_is_better(run.status.recipe, name) ? std::fmin(best, metric->best)
                                                       : std::fmax(best, metric->best);
    return best;
  }

  void add_metrics() {
    const std::vector<std::string> names = metric_names();
    for (const std::string& name : names) {
      add(display_name(name, names), [&](const auto& run) {
        const EvaluatedMetric* metric = metric_of(run, name);
        return metric ? number_text(metric->last) : kNoCell;
      });
      add("  best", [&, best = best_of_all(name)](const auto& run) {
        const EvaluatedMetric* metric = metric_of(run, name);
        if (!metric) return std::string(kNoCell);
        return number_text(metric->best) + (metric->best == best ? "*" : "") + " (step " +
               std::to_string(metric->best_step) + ')';
      });
    }
  }

  void add_matrices() {
    std::vector<std::string> names;
    for (const ComparedRun& run : runs_)
      for (const auto& [name, text] : matrix_lines(run.status.metrics.evaluated))
        if (std::ranges::count(names, name) == 0) names.push_back(name);
    for (const std::string& name : names)
      add(name, [&](const auto& run) {
        for (const auto& [matrix, text] : matrix_lines(run.status.metrics.evaluated))
          if (matrix == name) return text;
        return std::string(kNoCell);
      });
  }

  void add_keys() {
    std::vector<RecipeValues> recipes;
    for (const ComparedRun& run : runs_) recipes.push_back(run.keys);
    for (const std::string& key : differing_keys(recipes))
      add(key, [&](const auto& run) {
        const auto entry = run.keys.find(key);
        return entry == run.keys.end() ? kNoCell : without_quotes(entry->second);
      });
  }

  std::vector<std::string> names_;
  std::vector<ComparedRun> runs_;
  std::vector<TextColumn> columns_;
};

}  // namespace

std::string comparison_text(const std::vector<std::string>& run_dirs, int width) {
  return Comparison(run_dirs).text(width);
}

}  // namespace tutti
