#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

class Setting;

// True for names of metrics of which less is better: a loss, an error (also "mse", "rmse", "mae"),
// perplexity, cross entropy. Composer takes cross entropy for a metric to maximize.
bool less_is_better(const std::string& metric, bool composer = false);

// The same for a metric that an evaluation of the resolved recipe may give a name of its own, which then says
// nothing: by its kind.
bool less_is_better(const Setting& recipe, const std::string& metric);

// "eval/CrossEntropy" of "metrics/eval/CrossEntropy", as evaluations are logged.
std::string evaluated_name(const std::string& logged);

// "CrossEntropy" of "eval/CrossEntropy" if all names have the same label, else the whole; "eval/loss" in any
// case, since "loss" is the training's.
std::string display_name(const std::string& metric, const std::vector<std::string>& all);

// A metric over the evaluations of a run.
struct EvaluatedMetric {
  std::string name;  // "eval/CrossEntropy"
  double last = 0;
  double best = 0;  // NaN is never better than a number
  int64_t best_step = 0;
  double worst = 0;  // the best for a user to whom the other direction is better
};

// Without the cells of matrices (matrix_metrics.h).
std::vector<EvaluatedMetric> single_metrics(const std::vector<EvaluatedMetric>& metrics);
// Each matrix among the metrics in short: its name, and "10 x 10, 93.3% on the diagonal".
std::vector<std::pair<std::string, std::string>> matrix_lines(const std::vector<EvaluatedMetric>& metrics);

// The logged figures of a run so far: of its newest step and of all evaluations.
class RunMetrics {
 public:
  // Reads metrics.jsonl, its evaluations up to `last_step`. Lines that are torn or no JSON objects are left
  // out; without a file there are no evaluations.
  // `less`: of which metrics less is better.
  using LessIsBetter = std::function<bool(const std::string&)>;
  static RunMetrics read(const std::string& path, int64_t last_step = std::numeric_limits<int64_t>::max(),
                         LessIsBetter less = by_name());

  void add_evaluation(std::string name, double value, int64_t step);

  int64_t step = 0;  // the newest; 0 = none
  int64_t epoch = 0;
  std::vector<std::pair<std::string, double>> figures;  // of the newest step: "loss", "lr", ...
  std::vector<EvaluatedMetric> evaluated;               // in the order of their first evaluation

  double figure(const std::string& name) const;  // NaN if there is none

 private:
  static LessIsBetter by_name();

  LessIsBetter less_ = by_name();
};

}  // namespace tutti
