#include "job/copied_targets.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "data/transforms/ignore_index.h"
#include "data/transforms/transform.h"

namespace tutti {
namespace {

constexpr int64_t kLookedAt = 16;

// What a model reads.
struct TokenArrays {
  std::string input = kInputArray, target = kTargetArray;
};

Batch some_samples(const Dataset& data) {
  const int64_t count = std::min(kLookedAt, data.size());
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(i * data.size() / count);
  return data.get(rows, {});
}

// Tokens that are all alike are the next ones too.
bool are_copies(const at::Tensor& input, const at::Tensor& target, double least_counted) {
  const at::Tensor counted = target.ne(kIgnoredTarget);
  if (counted.to(at::kDouble).mean().item<double>() <= least_counted) return false;
  if (target.ne(input).logical_and(counted).any().item<bool>()) return false;
  const int64_t length = input.size(1) - 1;
  const at::Tensor others = target.narrow(1, 0, length).ne(input.narrow(1, 1, length));
  return others.logical_and(counted.narrow(1, 0, length)).any().item<bool>();
}

// Few masked tokens may all have stayed as they were, so that most targets have to count.
void require_no_copies(const Setting& section, const Dataset& data, bool is_gpt) {
  const SampleSpec samples = data.spec();
  TokenArrays arrays;
  if (!is_gpt && samples.shapes.count("input_ids")) arrays.input = "input_ids";
  if (!is_gpt && samples.shapes.count("labels")) arrays.target = "labels";
  const auto target = samples.shapes.find(arrays.target);
  if (target == samples.shapes.end() || target->second != samples.shapes.at(arrays.input)) return;
  const Batch batch = some_samples(data);
  if (!are_copies(batch[arrays.input], batch[arrays.target], is_gpt ? 0.0 : 0.5)) return;
  section.at(section.has("arrays") ? "arrays" : "kind")
      .fail("each target in '" + arrays.target + "' is the token of '" + arrays.input +
            "' at its own place, which a model learns to copy; the transform " +
            (is_gpt ? "next_token shifts targets, as Hugging Face's models do" : "mask_tokens masks tokens"));
}

}  // namespace

void require_no_copied_targets(const Job& job) {
  const std::string& kind = job.recipe.at("model").at("kind").text();
  if (kind != "gpt" && kind != "bert_mlm") return;
  require_no_copies(job.recipe.at("data").at("train"), *job.train, kind == "gpt");
  for (const Evaluator& evaluator : job.evaluators)
    require_no_copies(evaluator.section, *evaluator.data, kind == "gpt");
}

}  // namespace tutti
