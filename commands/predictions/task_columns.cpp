#include "commands/predictions/task_columns.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "data/texts/task_tokens.h"
#include "training/metrics/answers.h"
#include "training/metrics/choices.h"
#include "training/token_text.h"

namespace tutti {
namespace {

WrittenRows columns_of_answers(const State& state) {
  const TokenTextPtr text = token_text_of(state.dataset, state.model->vocabulary());
  std::vector<std::string> answers, references;
  for (const JudgedAnswer& answer : judged_answers(state.batch, state.outputs, text.get())) {
    answers.push_back(answer.text);
    references.push_back(answer.references.front());
  }
  return {{"answer", std::move(answers)}, {"reference", std::move(references)}};
}

WrittenRows columns_of_choices(const State& state) {
  const at::Tensor sums = choice_log_probabilities(state.outputs.tensor(), state.batch).cpu(),
                   facts = state.batch["choice"].cpu();
  std::vector<int64_t> questions, choices, right;
  std::vector<double> logprobs;
  for (int64_t row = 0; row < facts.size(0); ++row) {
    const auto fact = [&](int64_t number) { return facts[row][number].item<int64_t>(); };
    questions.push_back(fact(0));
    choices.push_back(fact(1));
    right.push_back(fact(3));
    logprobs.push_back(sums[row].item<double>());
  }
  return {{"question", std::move(questions)},
          {"choice", std::move(choices)},
          {"logprob", std::move(logprobs)},
          {"is_right", std::move(right)}};
}

}  // namespace

WrittenRows task_columns(const State& state) {
  if (state.batch.find(kReferences)) return columns_of_answers(state);
  return state.batch.find(kChoiceTargets) ? columns_of_choices(state) : WrittenRows();
}

}  // namespace tutti
