#include "training/evaluation/answers.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "data/texts/task_tokens.h"
#include "models/generation.h"

namespace tutti {
namespace {

constexpr const char* kGeneration = "generation";
// The numbers of each sample.
enum GenerationFact { kPromptTokens, kNewTokens, kEndToken, kGenerationFacts };

std::vector<Prompt> prompts_in(const at::Tensor& input, const at::Tensor& facts, uint64_t seed) {
  std::vector<Prompt> prompts;
  for (int64_t row = 0; row < input.size(0); ++row) {
    const auto* begin = input.const_data_ptr<int64_t>() + row * input.size(1);
    const int64_t tokens = facts[row][kPromptTokens].item<int64_t>();
    prompts.push_back({{begin, begin + tokens}, RandomKey(seed, "answers")});
  }
  return prompts;
}

}  // namespace

Outputs evaluated_outputs(const State& state, const Batch& batch) {
  if (!batch.find(kReferences)) return state.eval_forward(batch);
  const at::Tensor facts = batch[kGeneration].cpu(), input = batch["input"].cpu().contiguous();
  const int64_t most = facts[0][kNewTokens].item<int64_t>(), end = facts[0][kEndToken].item<int64_t>();
  GenerationOptions options{.max_new_tokens = most, .end_token = end};
  options.each_token = [&services = *state.services] { services.still_at_work(); };
  const auto answers = state.generate(prompts_in(input, facts, state.seed), options);
  at::Tensor tokens = at::full({input.size(0), most}, -1, at::kLong);
  for (std::size_t row = 0; row < answers.size(); ++row)
    std::copy(answers[row].begin(), std::ranges::find(answers[row], end),
              tokens.mutable_data_ptr<int64_t>() + static_cast<int64_t>(row) * most);
  return tokens;
}

Batch with_short_answers(const Batch& batch) {
  if (!batch.find(kReferences)) return batch;
  Batch shorter = batch;
  at::Tensor facts = batch[kGeneration].clone();
  facts.select(1, kNewTokens).fill_(1);
  shorter.set(kGeneration, facts);
  return shorter;
}

int64_t forwards_of_part(const Setting& section) {
  return section.has("max_new_tokens") ? section.at("max_new_tokens").integer() : 1;
}

}  // namespace tutti
