#include "job/task.h"

#include <algorithm>
#include <utility>

#include "recipe/catalog.h"
#include "recipe/time/time.h"
#include "runtime/error.h"

namespace tutti {
namespace {

void check_duration(const std::string& text, bool counts_tokens) {
  const Time time = Time::parse(text);
  const bool ends =
      time.value() > 0 && time.unit() != TimeUnit::kDuration && time.unit() != TimeUnit::kIteration;
  if (!ends) throw UserError("a task trains on for " + text + "; expected a time like 2ep, 100ba or 60sec");
  if (time.unit() == TimeUnit::kToken && !counts_tokens)
    throw UserError("a task trains on for " + text + ", but the model counts no tokens");
}

}  // namespace

Task train_on(const std::string& duration) { return {Task::Kind::kFit, duration, "", {}}; }

Task evaluate_on(const std::string& label) { return {Task::Kind::kEvaluate, "", label, {}}; }

Task predict_on(const std::string& label, OutputsCallback on_outputs) {
  return {Task::Kind::kPredict, "", label, std::move(on_outputs)};
}

void check_tasks(const std::vector<Task>& tasks, const std::vector<Evaluator>& evaluators,
                 bool counts_tokens) {
  std::vector<std::string> labels;
  for (const auto& evaluator : evaluators) labels.push_back(evaluator.label);
  for (const Task& task : tasks) {
    const bool trains = task.kind == Task::Kind::kFit;
    if (trains) check_duration(task.duration, counts_tokens);
    const bool all = task.kind == Task::Kind::kEvaluate && task.label.empty();
    if (!trains && !all && std::find(labels.begin(), labels.end(), task.label) == labels.end())
      throw UserError("a task names the evaluator '" + task.label + "'; there are: " + joined(labels));
    if (all && labels.empty()) throw UserError("a task evaluates, but there is no evaluator");
  }
}

}  // namespace tutti
