#pragma once

#include <string>
#include <vector>

#include "actors/evaluator.h"
#include "actors/prediction.h"
#include "training/time.h"

namespace tutti {

// What is done when the training has come to its end, one task after the other on the weights that there are
// then. Checkpoints count the tasks that are done: a run that goes on does not do them again.
struct Task {
  enum class Kind { kFit, kEvaluate, kPredict };
  Kind kind = Kind::kEvaluate;
  Time duration;      // kFit: how long to train on; max_duration becomes what is trained by then and this
  std::string label;  // of an evaluator; kEvaluate: "" = of all
  TakeOutputs take;   // kPredict: may be empty; called on rank 0, which alone predicts
};

Task train_on(const std::string& duration);       // Composer's trainer.fit(duration)
Task evaluate_on(const std::string& label = "");  // trainer.eval
Task predict_on(const std::string& label = "eval", TakeOutputs take = {});  // trainer.predict

// Throws UserError where a task names an evaluator that there is not, or a duration that is none.
void check_tasks(const std::vector<Task>& tasks, const std::vector<Evaluator>& evaluators);

}  // namespace tutti
