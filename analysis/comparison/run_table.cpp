#include "analysis/comparison/run_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <set>

#include "analysis/comparison/short_names.h"
#include "analysis/comparison/text_table.h"
#include "io/formats/matrix_metrics.h"
#include "io/tables/table_writer.h"
#include "recipe/time/time.h"
#include "recipe/time/time_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kFacts[] = {"state", "step", "epoch", "loss", "samples_per_s"};
constexpr const char* kEmptyCell = "-";

bool is_damaged(const RunStatus& run) { return run.ending.condition == RunCondition::kDamaged; }

std::string short_number(double value) { return formatted("%.6g", without_nan_sign(value)); }
std::string exact_number(double value) { return python_repr(value); }

std::optional<Time> time_of(const std::string& text) try {
  return Time::parse(text);
} catch (const UserError&) {
  return std::nullopt;
}

// Numbers and times of the same unit have an order; texts are equal or not, with an order for sorting alone.
// Times of other units are neither equal nor in order.
struct Compared {
  std::partial_ordering order = std::partial_ordering::unordered;
  bool are_texts = false;
};

Compared compared(const std::string& toml_a, const std::string& toml_b) {
  const std::string a = without_quotes(toml_a), b = without_quotes(toml_b);
  const auto first = python_float(a), second = python_float(b);
  if (first && second) return {*first <=> *second};
  const auto first_time = time_of(a), second_time = time_of(b);
  if (first_time && second_time && first_time->unit() != second_time->unit()) return {};
  if (first_time && second_time) return {*first_time <=> *second_time};
  return {a <=> b, true};
}

// "lr>0.1" as name, operator and value.
struct Condition {
  std::string text, name, operation, value;

  explicit Condition(std::string condition) : text(std::move(condition)) {
    const std::size_t at = text.find_first_of("=!<>");
    const std::size_t end = at == text.npos ? at : text.find_first_not_of("=!<>", at);
    const auto trimmed = [](const std::string& part) {
      const std::size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
      return first == part.npos ? std::string() : part.substr(first, last - first + 1);
    };
    if (end != text.npos) {
      name = trimmed(text.substr(0, at));
      operation = text.substr(at, end - at);
      value = trimmed(text.substr(end));
    }
    static constexpr std::array kOperations{"=", "==", "!=", "<", "<=", ">", ">="};
    if (name.empty() || value.empty() || std::ranges::count(kOperations, operation) == 0)
      throw UserError("--where " + shown(text) +
                      ": expected a key or metric, one of = != < <= > >=, and a "
                      "value, as in 'lr>0.1'");
  }

  bool holds(const std::optional<std::string>& actual) const {
    if (!actual) return operation == "!=";
    const auto [order, are_texts] = compared(*actual, value);
    if (operation == "=" || operation == "==") return std::is_eq(order);
    if (operation == "!=") return !std::is_eq(order);
    if (are_texts)
      throw UserError("--where " + shown(text) + ": " + shown(name) + " is " + shown(*actual) +
                      " in a run, which is neither more nor less than " + shown(value));
    if (operation == "<") return std::is_lt(order);
    if (operation == "<=") return std::is_lteq(order);
    return operation == ">" ? std::is_gt(order) : std::is_gteq(order);
  }
};

std::string progress_cell(const RunStatus& run) {
  const auto whole = time_of(run.max_duration);
  const auto of = [&](const char* unit, int64_t done) {
    return unit + std::to_string(done) + '/' + std::to_string(whole->count());
  };
  if (whole && whole->unit() == TimeUnit::kEpoch) return of("epoch ", run.metrics.epoch);
  if (whole && whole->unit() == TimeUnit::kBatch) return of("step ", run.metrics.step);
  return "step " + std::to_string(run.metrics.step) + (whole ? " of " + run.max_duration : "");
}

// The failure of a run that failed; else the time of its last step.
std::string last_cell(const RunStatus& run, int64_t now_unix_s) {
  const RunCondition condition = run.ending.condition;
  if (condition == RunCondition::kDamaged || condition == RunCondition::kFailed)
    return on_one_line(run.ending.reason);
  return on_one_line(last_step_text(run, now_unix_s));
}

void add_csv_line(std::string& csv, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) csv += ',';
    append_csv_field(csv, fields[i]);
  }
  csv += '\n';
}

}  // namespace

RunTable::RunTable(std::vector<RunStatus> runs, const RunQuery& query) : by_last_(query.by_last) {
  std::vector<std::string> run_dirs;
  std::vector<RecipeValues> recipes;
  for (const RunStatus& run : runs) run_dirs.push_back(run.run_dir);
  const std::vector<std::string> names = distinct_names(run_dirs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    rows_.push_back({std::move(runs[i]), {}, on_one_line(names[i])});
    Row& row = rows_.back();
    if (row.run.recipe.is_table()) row.keys = recipe_values(row.run.recipe);
    if (!is_damaged(row.run)) recipes.push_back(row.keys);
  }
  differing_ = differing_keys(recipes);
  const std::string sorted_by = query.sort.empty() ? "" : meant(query.sort, "--sort");
  choose_headline(sorted_by);
  for (const std::string& condition : query.where) keep_where(condition);
  if (!sorted_by.empty() || query.by_headline) sort_by(sorted_by.empty() ? headline_.name : sorted_by);
}

std::vector<RunStatus> RunTable::runs() const {
  std::vector<RunStatus> runs;
  for (const Row& row : rows_) runs.push_back(row.run);
  return runs;
}

std::vector<std::string> RunTable::key_names() const {
  std::set<std::string> names;
  for (const Row& row : rows_)
    for (const auto& [key, value] : row.keys) names.insert(key);
  return {names.begin(), names.end()};
}

std::vector<std::string> RunTable::metric_names() const {
  std::vector<std::string> names;
  for (const Row& row : rows_)
    for (const EvaluatedMetric& metric : row.run.metrics.evaluated)
      if (!matrix_cell(metric.name) && std::ranges::count(names, metric.name) == 0)
        names.push_back(metric.name);
  return names;
}

std::string RunTable::meant(const std::string& ending, const std::string& where) const {
  std::vector<std::string> preferred = metric_names();
  preferred.insert(preferred.end(), std::begin(kFacts), std::end(kFacts));
  preferred.insert(preferred.end(), differing_.begin(), differing_.end());
  std::vector<std::string> all = preferred;
  for (const std::string& key : key_names())
    if (std::ranges::count(all, key) == 0) all.push_back(key);
  return meant_name(ending, all, preferred, where);
}

void RunTable::choose_headline(const std::string& sorted_by) {
  std::vector<const Setting*> recipes;
  for (const Row& row : rows_) recipes.push_back(&row.run.recipe);
  const std::vector<std::string> metrics = metric_names();
  headline_ = headline_of(recipes, metrics);
  const bool is_metric =
      (sorted_by == "loss" && !rows_.empty()) || std::ranges::count(metrics, sorted_by) > 0;
  if (is_metric && sorted_by != headline_.name)
    headline_ = {sorted_by, less_is_better(*recipes.front(), sorted_by)};
}

std::optional<double> RunTable::metric(const Row& row, const std::string& name) const {
  const auto& evaluated = row.run.metrics.evaluated;
  const auto metric = std::ranges::find(evaluated, name, &EvaluatedMetric::name);
  if (metric != evaluated.end() && by_last_) return metric->last;
  if (metric != evaluated.end()) {
    const bool other_way =
        name == headline_.name && headline_.less_is_better != less_is_better(row.run.recipe, name);
    return other_way ? metric->worst : metric->best;
  }
  const double figure = row.run.metrics.figure(name);
  const bool is_fact = std::ranges::count(kFacts, name) > 0;
  return is_fact && !std::isnan(figure) ? std::optional(figure) : std::nullopt;
}

std::optional<std::string> RunTable::value(const Row& row, const std::string& name) const {
  if (is_damaged(row.run)) return std::nullopt;
  if (name == "state") return tutti::name(row.run.ending.condition);
  if (name == "step") return std::to_string(row.run.metrics.step);
  if (name == "epoch") return std::to_string(row.run.metrics.epoch);
  if (const auto number = metric(row, name)) return exact_number(*number);
  const auto key = row.keys.find(name);
  return key == row.keys.end() ? std::nullopt : std::optional(key->second);
}

void RunTable::keep_where(const std::string& text) {
  const Condition condition(text);
  const std::string name = meant(condition.name, "--where " + shown(text));
  std::erase_if(rows_,
                [&](const Row& row) { return !is_damaged(row.run) && !condition.holds(value(row, name)); });
}

void RunTable::sort_by(const std::string& name) {
  const bool descends = name == headline_.name && !headline_.less_is_better;
  std::ranges::stable_sort(rows_, [&](const Row& a, const Row& b) {
    auto first = value(a, name), second = value(b, name);
    for (auto* number : {&first, &second})
      if (*number == "nan") number->reset();
    if (!first || !second) return first.has_value() && !second;
    const auto order = compared(*first, *second).order;
    return descends ? std::is_gt(order) : std::is_lt(order);
  });
}

std::string RunTable::text(int64_t now_unix_s, int width) const {
  const std::string headline = short_name(headline_.name, metric_names());
  std::vector<TextColumn> columns = {{"run", {}, 0},
                                     {"state", {}, 0},
                                     {"progress", {}, 2},
                                     {headline_.name == "loss" ? headline_.name : "best " + headline, {}, 0}};
  int rank = 2 + static_cast<int>(differing_.size());
  for (const std::string& key : differing_) columns.push_back({short_name(key, differing_), {}, rank--});
  columns.push_back({"size", {}, 4 + static_cast<int>(differing_.size())});
  columns.push_back({"last step", {}, 0});
  for (const Row& row : rows_) {
    const bool damaged = is_damaged(row.run);
    std::vector<std::string> cells = {row.name, name(row.run.ending.condition),
                                      damaged ? kEmptyCell : progress_cell(row.run)};
    const auto best = damaged ? std::nullopt : metric(row, headline_.name);
    cells.push_back(best ? short_number(*best) : kEmptyCell);
    for (const std::string& key : differing_) {
      const auto entry = row.keys.find(key);
      cells.push_back(entry == row.keys.end() ? kEmptyCell : on_one_line(without_quotes(entry->second)));
    }
    cells.push_back(damaged ? kEmptyCell : size_text(row.run.bytes));
    cells.push_back(last_cell(row.run, now_unix_s));
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return table_text(std::move(columns), width);
}

std::string RunTable::csv() const {
  const std::vector<std::string> metrics = metric_names();
  std::vector<std::string> headings = {"run",          "state", "reason",        "step", "epoch",
                                       "max_duration", "loss",  "samples_per_s", "bytes"};
  for (const std::string& metric : metrics) headings.insert(headings.end(), {metric, "best " + metric});
  headings.insert(headings.end(), differing_.begin(), differing_.end());
  std::string csv;
  add_csv_line(csv, headings);
  for (const Row& row : rows_) {
    const RunStatus& run = row.run;
    const auto figure = [&](const char* of) {
      const double number = run.metrics.figure(of);
      return std::isnan(number) ? "" : exact_number(number);
    };
    std::vector<std::string> fields = {run.run_dir,
                                       name(run.ending.condition),
                                       run.ending.reason,
                                       std::to_string(run.metrics.step),
                                       std::to_string(run.metrics.epoch),
                                       run.max_duration,
                                       figure("loss"),
                                       figure("samples_per_s"),
                                       std::to_string(run.bytes)};
    for (const std::string& name : metrics) {
      const auto entry = std::ranges::find(run.metrics.evaluated, name, &EvaluatedMetric::name);
      const bool measured = entry != run.metrics.evaluated.end();
      fields.push_back(measured ? exact_number(entry->last) : "");
      fields.push_back(measured ? exact_number(*metric(row, name)) : "");
    }
    for (const std::string& key : differing_) {
      const auto entry = row.keys.find(key);
      fields.push_back(entry == row.keys.end() ? "" : without_quotes(entry->second));
    }
    add_csv_line(csv, fields);
  }
  return csv;
}

}  // namespace tutti
