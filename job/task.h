#pragma once

#include <string>
#include <vector>

#include "training/evaluation/evaluation.h"
#include "training/evaluation/evaluator.h"

namespace tutti {

// A task after the end of training, on the weights at that time. Tasks run one after the other. A checkpoint
// is written before a task trains on, and after the last task. Checkpoints have the number of tasks done, so
// a resumed run does not repeat tasks.
struct Task {
  enum class Kind { kFit, kEvaluate, kPredict };
  Kind kind = Kind::kEvaluate;
  std::string duration;        // kFit: in ep, ba, sp, tok or sec; max_duration becomes now plus this duration
  std::string label;           // of an evaluator; kEvaluate: "" = all
  OutputsCallback on_outputs;  // kPredict: may be empty; called on rank 0 only
};

Task train_on(const std::string& duration);       // Composer's trainer.fit(duration)
Task evaluate_on(const std::string& label = "");  // trainer.eval
Task predict_on(const std::string& label = "eval", OutputsCallback on_outputs = {});  // trainer.predict

// Throws UserError if a task names an unknown evaluator, or a duration that never ends.
void check_tasks(const std::vector<Task>& tasks, const std::vector<Evaluator>& evaluators,
                 bool counts_tokens);

}  // namespace tutti
