#pragma once

#include <string>
#include <vector>

#include "training/evaluation/evaluation.h"
#include "training/evaluation/evaluator.h"

namespace tutti {

// What is done when the training has come to its end, one task after the other on the weights that there are
// then. A checkpoint is written before training goes on and after the last task; it counts the tasks that are
// done, so that a run which is resumed from it does not do them again.
struct Task {
  enum class Kind { kFit, kEvaluate, kPredict };
  Kind kind = Kind::kEvaluate;
  std::string duration;  // kFit: a time in ep, ba, sp, tok or sec; max_duration is then so much later
  std::string label;     // of an evaluator; kEvaluate: "" = of all
  TakeOutputs take;      // kPredict: may be empty; called on rank 0, which alone predicts
};

Task train_on(const std::string& duration);       // Composer's trainer.fit(duration)
Task evaluate_on(const std::string& label = "");  // trainer.eval
Task predict_on(const std::string& label = "eval", TakeOutputs take = {});  // trainer.predict

// Throws UserError where a task names an evaluator that there is not, or a duration that never ends.
void check_tasks(const std::vector<Task>& tasks, const std::vector<Evaluator>& evaluators,
                 bool counts_tokens);

}  // namespace tutti
