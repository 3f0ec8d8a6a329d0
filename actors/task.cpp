#include "actors/task.h"

#include <algorithm>
#include <utility>

#include "runtime/catalog.h"
#include "runtime/error.h"

namespace tutti {

Task train_on(const std::string& duration) { return {Task::Kind::kFit, Time::parse(duration), "", {}}; }

Task evaluate_on(const std::string& label) { return {Task::Kind::kEvaluate, {}, label, {}}; }

Task predict_on(const std::string& label, TakeOutputs take) {
  return {Task::Kind::kPredict, {}, label, std::move(take)};
}

void check_tasks(const std::vector<Task>& tasks, const std::vector<Evaluator>& evaluators) {
  std::vector<std::string> labels;
  for (const auto& one : evaluators) labels.push_back(one.label);
  for (const Task& task : tasks) {
    const bool trains = task.kind == Task::Kind::kFit;
    if (trains && (task.duration.unit() == TimeUnit::kDuration || task.duration.value() <= 0))
      throw UserError("a task trains on for " + task.duration.text() + "; expected a time like 2ep or 100ba");
    const bool all = task.kind == Task::Kind::kEvaluate && task.label.empty();
    if (!trains && !all && std::find(labels.begin(), labels.end(), task.label) == labels.end())
      throw UserError("a task names the evaluator '" + task.label + "'; there are: " + joined(labels));
    if (all && labels.empty()) throw UserError("a task evaluates, but there is no evaluator");
  }
}

}  // namespace tutti
